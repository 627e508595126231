// kill(2) and its kin. Natively a signal is pending for somebody before the sender goes on.
#pragma once

#include <sys/types.h>

#include <optional>

#include "monitor/home/process.h"
#include "syscall/marshal.h"

namespace gpr {

struct SentSignal {
    int number = 0;
    pid_t process = 0;  // 0: several, or named otherwise
    pid_t thread = 0;   // 0: any of the process
};

// Nothing: the call sends none.
std::optional<SentSignal> sent_signal(uint32_t number, const SyscallArguments& args);

// A thread of the process is about to stop for it, so that it can be passed on to where the thread
// is.
bool is_about_to_be_taken(const HomeProcess& process, const SentSignal& signal);

}  // namespace gpr
