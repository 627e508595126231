// Namespaces whose ids and clocks a process can see without a system call that we could intercept.
#pragma once

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <string>

namespace gpr {

struct OwnNamespaces {
    ino_t ids = 0, time = 0;  // 0: this kernel has none
    bool operator==(const OwnNamespaces&) const = default;
};

// for_children: of the next child of this thread rather than of the thread.
inline OwnNamespaces namespaces_of(pid_t tid, bool for_children = false) {
    auto inode = [&](const char* name) -> ino_t {
        struct stat st {};
        auto path = fmt::format("/proc/{}/ns/{}{}", tid, name, for_children ? "_for_children" : "");
        return stat(path.c_str(), &st) == 0 ? st.st_ino : 0;
    };
    return {inode("pid"), inode("time")};
}

}  // namespace gpr
