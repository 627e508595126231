#include "tools/find_program.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "monitor/rules/exec_options.h"

namespace gpr {
namespace {

// 0, or the errno with which execve would refuse it.
int refusal_of(const std::string& path) {
    struct stat status {};
    if (stat(path.c_str(), &status) == -1) return errno;
    if (!S_ISREG(status.st_mode)) return EACCES;
    return faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

bool is_absence(int refusal) { return refusal == ENOENT || refusal == ENOTDIR; }

Failure refused(int refusal, const std::string& name) {
    if (is_absence(refusal)) {
        return fail(ENOENT, fmt::format("cannot run {}", name));
    }
    return fail(refusal, fmt::format("cannot execute {}", name));
}

}  // namespace

Result<std::string> find_program(const std::string& name, const std::string& search_path) {
    if (name.find('/') != std::string::npos) {
        const int refusal = refusal_of(name);
        if (refusal != 0) return refused(refusal, name);
        return name;
    }
    // As in execvp: after a file that may not be executed, later directories are still searched.
    int worst = ENOENT;
    size_t begin = 0;
    while (!name.empty() && begin <= search_path.size()) {
        const size_t end = std::min(search_path.find(':', begin), search_path.size());
        const std::string directory = search_path.substr(begin, end - begin);
        const std::string path = directory.empty() ? "./" + name : directory + "/" + name;
        const int refusal = refusal_of(path);
        if (refusal == 0) return path;
        if (!is_absence(refusal)) worst = refusal;
        begin = end + 1;
    }
    return refused(worst, name.empty() ? "''" : name);
}

std::string program_search_path(const Environment& environment) {
    const char* path = environment("PATH");
    return path != nullptr ? path : "/bin:/usr/bin";
}

int exit_status_of(const Error& error) {
    return error.code == ENOENT ? exit_not_found : exit_cannot_execute;
}

}  // namespace gpr
