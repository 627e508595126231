// Seccomp filters of a process that is taken over: gpr's, and the program's own.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "monitor/tracee/infection.h"

namespace gpr {

class InfectedFilters {
public:
    explicit InfectedFilters(Infection& infection) : its_(infection) {}

    // For a process that has filters of its own, to be called before anything else: from then on
    // our calls are made where those filters let them pass (monitor/node/program_filter.h), until
    // the process is handed over or given back.
    Result<> open_gate();
    // Installs a filter for all threads at once. The process does not keep the listener, if the
    // filter has one.
    Result<> install(std::span<const sock_filter> filter, bool has_listener = true);
    // A filter that the program wants to have, with the prologue that lets our calls pass.
    struct Wanted {
        std::vector<sock_filter> code;
        uint64_t flags = 0;                // SECCOMP_FILTER_FLAG_*
        bool gives_up_privileges = false;  // PR_SET_NO_NEW_PRIVS
    };
    // The thread makes the call. Returns what the kernel returns.
    Result<int64_t> install_for_program(pid_t tid, const Wanted& wanted);

private:
    Result<> put(std::span<const sock_filter> filter);

    Infection& its_;
};

}  // namespace gpr
