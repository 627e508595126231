#include "monitor/tracee/descriptor_kinds.h"

#include <filesystem>

namespace gpr {

namespace fs = std::filesystem;

bool is_descriptor(const std::string& link, std::string_view called) {
    std::error_code error;
    return fs::read_symlink(link, error).string() == called;
}

bool has_descriptor(pid_t pid, std::string_view called) {
    std::error_code error;
    fs::directory_iterator at("/proc/" + std::to_string(pid) + "/fd", error), end;
    for (; !error && at != end; at.increment(error)) {
        if (is_descriptor(at->path().string(), called)) return true;
    }
    return false;
}

}  // namespace gpr
