// kill(2) and similar calls. Natively a signal is pending before the sender continues.
#pragma once

#include <sys/types.h>

#include <optional>

#include "monitor/home/process.h"
#include "syscall/marshal.h"

namespace gpr {

struct SentSignal {
    int number = 0;
    pid_t process = 0;        // 0: several, or not named by process
    pid_t thread = 0;         // 0: any thread of the process
    uint64_t met_before = 0;  // Signals::met(), before it was sent
};

// nullopt if the call sends none.
std::optional<SentSignal> sent_signal(uint32_t number, const SyscallArguments& args);

// How far the process is with a signal that was sent to it. Once a thread has stopped for the
// signal, it can be passed on to where the thread is.
enum class Taking {
    done,   // a thread has stopped for it, or none will now
    later,  // the thread that will is doing something else, such as waiting for its vfork child
    soon,   // a thread will, as soon as it gets a processor
};
Taking taking_of(const HomeProcess& process, const SentSignal& signal, bool met);

}  // namespace gpr
