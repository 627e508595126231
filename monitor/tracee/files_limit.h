// The limit of open files of a process in a session whose acceptors have descriptors of their own:
// it is lowered, so that home's kernel gives the process no number of theirs, and raised again when
// the process has nothing to do with them any more.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include "base/result.h"

namespace gpr {

class FilesLimit {
public:
    FilesLimit() = default;
    // The limit that the process has now, before it is lowered. most: what it is lowered to; 0: it
    // is not.
    static FilesLimit of(pid_t pid, rlim_t most);

    // Fails if the process has a descriptor with a number that acceptors have.
    [[nodiscard]] Result<> check(pid_t pid) const;
    // The soft limit; with `hard` also the other, which only CAP_SYS_RESOURCE may raise again.
    void lower(pid_t pid, bool hard = false) const;
    // If it has been restored, or raised by the program: it is lowered again.
    void lower_again(pid_t pid);
    // What has been lowered is as before, also in the process's children; what the program itself
    // has changed since then is left as it is. Without CAP_SYS_RESOURCE a lowered hard limit stays.
    void restore(pid_t pid) const;
    // What a process that has `now` gets.
    [[nodiscard]] rlimit restored(rlimit now) const;

private:
    rlim_t most_ = 0;
    rlimit before_{};
};

}  // namespace gpr
