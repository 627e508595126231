// The program's seccomp filters. This kernel installs each for the thread's shadow, so that
// children inherit it. The acceptor is told before the thread, or another one that the filter is
// for, makes a call there.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>

#include "mm/page_protocol.h"
#include "monitor/home/part.h"
#include "monitor/node/program_filter.h"

namespace gpr::home {

class Filters {
public:
    explicit Filters(Home& home) : home_(home) {}

    Task<void> install_for(HomeProcess& process, HomeThread& thread, uint64_t number,
                           std::array<uint64_t, 6> args);
    Task<void> filter_call(HomeProcess& process, HomeThread& thread, Notification n);
    static void note_common_filters(const HomeThread& thread);
    // Whether any thread of the process has filters; whether all have the same ones.
    static bool has_any(const HomeProcess& process);
    static bool are_common(const HomeProcess& process);
    // The kernel has installed the filter for the thread, or for all threads of its process.
    static void note_installed(HomeThread& thread, const FilterCall& call);
    // The kernel makes a call of the program's as it is; if that installs a filter, no gpr can make
    // calls in the process from now on, nor in programs that it executes.
    static void note_native_call(HomeThread& thread, const Notification& n);
    // libseccomp asks so which flags the kernel knows: it refuses the call.
    static bool is_probe(const HomeProcess& process, const Notification& n);
    static int64_t seccomp_mode(const HomeThread& thread);
    // The program's. Of those that gpr has not installed, it only knows whether there are any.
    static size_t count(const HomeThread& thread);
    static void inherit_filters(const HomeThread& parent, HomeThread& child);
    void take_state_of_caller(HomeProcess& process, HomeThread& thread);
    static bool is_ended_by_filter(const HomeThread& thread, int signal);
    Task<void> die_by_filter(HomeThread& thread, FilterDeath death);

private:
    Task<void> release_for_filters(HomeProcess& process, HomeThread& thread);
    Task<int64_t> install(HomeThread& thread, uint64_t number, std::array<uint64_t, 6> args,
                          FilterCall call);
    Task<void> await_ends(pid_t pid);
    static std::optional<pid_t> in_the_way(const HomeThread& caller, bool takes_its_own_along);
    void tell_common_filters(const HomeThread& thread, NodeId from = directory_node);

    Home& home_;
};

}  // namespace gpr::home
