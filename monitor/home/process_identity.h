// What decides which files a process sees under a path, and what it may do with them, by /proc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <initializer_list>
#include <string>

namespace gpr::home {

// What decides about permissions, in words.
std::string identity_of(pid_t pid, pid_t tid);
// Of a process whose threads agree.
bool may_what_we_may(pid_t pid);
// namespaces: names in /proc/PID/ns.
bool shares_namespaces(pid_t pid, std::initializer_list<const char*> namespaces);
// Whether they have one working directory.
bool share_fs(pid_t one, pid_t other);
// How many descriptors the process can open, whatever it is told: half of what is left.
uint32_t spare_descriptors(pid_t pid);

}  // namespace gpr::home
