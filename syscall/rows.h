// One file for each family of calls; table.cc joins them. Included by those files only.
#pragma once

#include <span>

#include "syscall/table.h"

namespace gpr {

std::span<const Row> descriptor_rows();  // reading, writing, polling, duplicating
std::span<const Row> path_rows();        // names in the file system, mounts
std::span<const Row> memory_rows();
std::span<const Row> process_rows();  // creation, identity, scheduling, limits
std::span<const Row> signal_rows();
std::span<const Row> time_rows();  // clocks, timers, futexes
std::span<const Row> socket_rows();
std::span<const Row> ipc_rows();     // System V and POSIX queues, keys
std::span<const Row> system_rows();  // the machine, modules, tracing, obsolete calls

namespace rows {

using enum Place;
using enum Support;
using namespace shape;
using there = AtAcceptor;
using here = AtHome;

inline constexpr Trait plain = Trait::none;
inline constexpr Trait blocks = Trait::blocks;
inline constexpr Trait final = Trait::never_returns;
inline constexpr Trait opens = Trait::changes_fds;
inline constexpr Trait notify = Trait::home_notify;
inline constexpr Trait by_rule = Trait::by_rule;
inline constexpr Trait fd_first = Trait::fd_first;
inline constexpr Trait told = Trait::told_unasked;
inline constexpr Trait modifies = Trait::modifies_files;
inline constexpr Trait split_only = Trait::of_split_only;
inline constexpr Trait maps = Trait::home_notify | Trait::maps_memory | told;

constexpr Details changes_memory(MemoryCall call) { return {.memory = call}; }

inline constexpr Details keeps_delegated{.on_delegated = OnDelegated::keeps};
inline constexpr Details gives_back_all{.on_delegated = OnDelegated::gives_back_all};

// Struct sizes of the x86-64 ABI; tests/unit/syscall compares them with the headers.
inline constexpr uint16_t stat_size = 144;
inline constexpr uint16_t statx_size = 256;
inline constexpr uint16_t statfs_size = 120;
inline constexpr uint16_t timespec_size = 16;
inline constexpr uint16_t itimer_size = 32;
inline constexpr uint16_t rusage_size = 144;
inline constexpr uint16_t rlimit_size = 16;
inline constexpr uint16_t siginfo_size = 128;
inline constexpr uint16_t sigset_size = 8;  // the kernel's, not libc's
inline constexpr uint16_t sigaction_size = 32;
inline constexpr uint16_t sigaltstack_size = 24;
inline constexpr uint16_t sigevent_size = 64;
inline constexpr uint16_t utsname_size = 390;
inline constexpr uint16_t sysinfo_size = 112;
inline constexpr uint16_t tms_size = 32;
inline constexpr uint16_t timex_size = 208;
inline constexpr uint16_t epoll_event_size = 12;  // packed
inline constexpr uint16_t pollfd_size = 8;
inline constexpr uint16_t sembuf_size = 6;
inline constexpr uint16_t mq_attr_size = 64;
inline constexpr uint16_t io_event_size = 32;
inline constexpr uint16_t io_uring_params_size = 120;
inline constexpr uint16_t ustat_size = 32;

// The kernel writes back the remaining time even if the call fails.
inline constexpr Argument time_left = inout(timespec_size, Returned::always);
inline constexpr Argument offset = inout(8, Returned::always);

}  // namespace rows
}  // namespace gpr
