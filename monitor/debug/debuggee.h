// A process as a debugger sees it: all of its threads run, or all are stopped. What is asked about
// threads and memory may be asked while it is stopped only.
#pragma once

#include <signal.h>
#include <sys/types.h>
#include <sys/user.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/fd.h"
#include "base/result.h"
#include "base/task.h"

namespace gpr::debug {

struct Registers {
    user_regs_struct general{};
    std::vector<std::byte> extended;  // as PTRACE_GETREGSET gives NT_X86_XSTATE; may be empty
};

// Why it stopped, or how it ended.
struct StopReason {
    enum class Kind {
        signal,  // value: the signal that the thread is about to get
        exec,    // it stands at the first instruction of another program, without breakpoints
        exited,  // value: exit status
        killed,  // value: the signal that ended the process
    };
    Kind kind = Kind::signal;
    pid_t tid = 0;  // of a signal or an exec
    int value = 0;
    // The signal is of a breakpoint of set_breakpoint(), and the thread stands before the
    // instruction there.
    bool at_breakpoint = false;
};

// How one thread continues.
struct Continuation {
    pid_t tid = 0;
    bool steps = false;  // stops again after one instruction
    int signal = 0;      // which it gets; 0: none
};

class DebuggeeMemory {
public:
    DebuggeeMemory() = default;
    DebuggeeMemory(const DebuggeeMemory&) = delete;
    DebuggeeMemory& operator=(const DebuggeeMemory&) = delete;
    virtual ~DebuggeeMemory() = default;

    // How many of the bytes could be read, from the first on.
    virtual Task<size_t> read(Address from, std::span<std::byte> bytes) = 0;
    // Also where the program itself may not write. All or nothing.
    virtual Task<bool> write(Address to, std::span<const std::byte> bytes) = 0;
    // Sets a breakpoint, or takes it away; read() shows what was there. False if nothing can be
    // written there.
    virtual Task<bool> set_breakpoint(Address at, bool there) = 0;
    // Content of /proc/PID/auxv, and of /proc/PID/maps as without gpr.
    [[nodiscard]] virtual std::string auxv() const = 0;
    [[nodiscard]] virtual std::string maps() const = 0;
    // Path of the program's file.
    [[nodiscard]] virtual std::string executable() const = 0;
    // For reading: only files that the process maps may be opened.
    virtual Result<Fd> open_mapped_file(const std::string& path) = 0;
};

class Debuggee {
public:
    Debuggee() = default;
    Debuggee(const Debuggee&) = delete;
    Debuggee& operator=(const Debuggee&) = delete;
    virtual ~Debuggee() = default;

    [[nodiscard]] virtual pid_t pid() const = 0;
    // Ascending; the ids are those of the program.
    [[nodiscard]] virtual std::vector<pid_t> threads() const = 0;
    // For people: where the thread ran before it was stopped.
    [[nodiscard]] virtual std::string place_of(pid_t tid) const = 0;
    // nullopt: no such thread.
    [[nodiscard]] virtual std::optional<Registers> registers(pid_t tid) const = 0;
    virtual bool set_registers(pid_t tid, const Registers& registers) = 0;
    // The signal that stopped the thread last.
    [[nodiscard]] virtual std::optional<siginfo_t> signal_info(pid_t tid) const = 0;
    virtual DebuggeeMemory& memory() = 0;  // another one after an exec

    // These threads continue; others stay stopped. The server is told of the next stop, when all
    // are stopped again, or of the end.
    virtual void go_on(const std::vector<Continuation>& threads) = 0;
    // Stops it, if it runs, with SIGINT as the reason.
    virtual void interrupt() = 0;
    virtual void kill() = 0;
    // It continues without breakpoints, and nobody is told any more.
    virtual void detach() = 0;
    // Answers "monitor gpr ..." with text for people.
    virtual Task<std::string> command(std::string words) = 0;
};

}  // namespace gpr::debug
