// kill(2) and similar calls. Natively a signal is pending before the sender continues.
#pragma once

#include <sys/types.h>

#include <optional>

#include "monitor/home/process.h"
#include "syscall/marshal.h"

namespace gpr {

struct SentSignal {
    int number = 0;
    pid_t process = 0;  // 0: several, or not named by process
    pid_t thread = 0;   // 0: any thread of the process
};

// nullopt if the call sends none.
std::optional<SentSignal> sent_signal(uint32_t number, const SyscallArguments& args);

// Whether a thread of the process is about to stop for the signal, after which it can be passed on
// to where the thread is.
bool is_about_to_be_taken(const HomeProcess& process, const SentSignal& signal);

}  // namespace gpr
