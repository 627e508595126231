// What the descriptors of a process are, as /proc/PID/fd names them.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace gpr {

inline constexpr std::string_view io_uring_descriptor = "anon_inode:[io_uring]";
inline constexpr std::string_view userfaultfd_descriptor = "anon_inode:[userfaultfd]";

// Whether it is called so. False if it cannot be read. link: its name there.
[[nodiscard]] bool is_descriptor(const std::string& link, std::string_view called);
// Whether one of the process's is called so.
[[nodiscard]] bool has_descriptor(pid_t pid, std::string_view called);

}  // namespace gpr
