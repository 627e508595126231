// A handler must not begin in the middle of a function of the vdso: its frame would hold addresses
// and values of this kernel's clock data, and the thread may be on another node when it returns.
// The signal waits in the kernel, blocked, while the thread makes single steps until it has left.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "monitor/tracee/waits.h"

namespace gpr {

class VdsoExit {
public:
    // Whether this signal can wait: not one by which an instruction tells of its own fault.
    static bool may_wait(int signal);
    // The thread, in the signal-delivery stop of `signal`, makes its first step.
    VdsoExit(pid_t tid, int signal);

    enum class Progress {
        steps,   // it is still there, and makes another step
        left,    // it runs on and gets the signal in its next stop
        stands,  // for another reason: the signal is pending, the stop is to be handled as any
    };
    // The thread has stopped again. After anything but `steps` this object has no more to do.
    Progress on_stop(WaitStatus status, bool is_in_vdso) const;

private:
    pid_t tid_;
    uint64_t mask_;  // the program's
};

}  // namespace gpr
