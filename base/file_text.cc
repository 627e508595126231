#include "base/file_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.h"

namespace gpr {

std::optional<std::string> read_file(const std::string& path) {
    Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return std::nullopt;
    std::string text;
    constexpr size_t at_once = 4096;
    for (size_t size = 0;;) {
        text.resize(size + at_once);
        ssize_t got = read(file.get(), text.data() + size, at_once);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return std::nullopt;
        size += static_cast<size_t>(got);
        text.resize(size);
        if (got == 0) return text;
    }
}

}  // namespace gpr
