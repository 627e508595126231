// A process as a debugger sees it: all of its threads run, or all are stopped. Its threads and
// memory may be queried and changed only while it is stopped.
#pragma once

#include <signal.h>
#include <sys/types.h>
#include <sys/user.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/fd.h"
#include "base/result.h"
#include "base/task.h"
#include "monitor/debug/hardware_breakpoints.h"

namespace gpr::debug {

struct Registers {
    user_regs_struct general{};
    std::vector<std::byte> extended;  // as PTRACE_GETREGSET gives NT_X86_XSTATE; may be empty
};

class Debuggee;

// Why the process stopped, or how it ended.
struct StopReason {
    enum class Kind {
        signal,  // value: the signal that the thread is about to get
        exec,    // it is at the first instruction of another program, without breakpoints
        exited,  // value: exit status
        killed,  // value: the signal that ended the process
    };
    Kind kind = Kind::signal;
    pid_t tid = 0;  // for signal and exec
    int value = 0;
    // A breakpoint of set_breakpoint() caused the signal; the thread is before the instruction
    // there.
    bool at_breakpoint = false;
    // So did this one.
    std::optional<HardwareBreakpoint> hardware;
    // The signal is SIGTRAP because of a system call that is caught: before it, or after it.
    struct Call {
        uint64_t number = 0;
        bool before = true;
    };
    std::optional<Call> call;
    // The signal is SIGTRAP because the thread has made this child, which waits for the debugger.
    struct Fork {
        pid_t child = 0;
        bool shares_memory = false;                   // vfork
        bool is_over = false;                         // it does not share it any more
        std::shared_ptr<Debuggee> process = nullptr;  // null if it is over
    };
    std::optional<Fork> fork;
    pid_t pid = 0;  // of the process; 0: the one with which the debugger began
};

inline bool has_ended(const StopReason& why) {
    return why.kind == StopReason::Kind::exited || why.kind == StopReason::Kind::killed;
}

// Which system calls stop a thread that makes them.
struct CaughtCalls {
    bool any = false;
    std::set<uint64_t> numbers;  // empty: all

    [[nodiscard]] bool contains(uint64_t number) const {
        return any && (numbers.empty() || numbers.contains(number));
    }
};

// How one thread continues.
struct Continuation {
    pid_t tid = 0;
    bool steps = false;  // stops again after one instruction
    int signal = 0;      // to deliver to it; 0: none
};

class DebuggeeMemory {
public:
    DebuggeeMemory() = default;
    DebuggeeMemory(const DebuggeeMemory&) = delete;
    DebuggeeMemory& operator=(const DebuggeeMemory&) = delete;
    virtual ~DebuggeeMemory() = default;

    // Returns how many bytes could be read, from the first on.
    virtual Task<size_t> read(Address from, std::span<std::byte> bytes) = 0;
    // Writes all bytes or none, even where the program itself may not write.
    virtual Task<bool> write(Address to, std::span<const std::byte> bytes) = 0;
    // Sets or removes a breakpoint; read() shows the bytes without it. False if nothing can be
    // written there.
    virtual Task<bool> set_breakpoint(Address at, bool there) = 0;
    // While the process is stopped: all pages come here, and stay until they may go again.
    virtual Task<void> gather(bool on) = 0;
    // When they have come: the parts of a mapping that are neither zero nor as in its file.
    // has_no_name: the file, which can be found only here.
    virtual Task<std::vector<Range>> content_of(Range mapping, bool has_no_name) = 0;
    // Content of /proc/PID/auxv, and of /proc/PID/maps as it would be without gpr.
    [[nodiscard]] virtual std::string auxv() const = 0;
    [[nodiscard]] virtual std::string maps() const = 0;
    // Path of the program's file.
    [[nodiscard]] virtual std::string executable() const = 0;
    // Opens for reading. Only files that the process maps may be opened.
    virtual Result<Fd> open_mapped_file(const std::string& path) = 0;
};

// What stops its threads beside signals and breakpoints in memory.
class DebuggeeTraps {
public:
    DebuggeeTraps() = default;
    DebuggeeTraps(const DebuggeeTraps&) = delete;
    DebuggeeTraps& operator=(const DebuggeeTraps&) = delete;
    virtual ~DebuggeeTraps() = default;

    // Sets or removes a breakpoint or watchpoint of the processor, for all threads. False if it has
    // too few registers.
    virtual bool set_hardware(const HardwareBreakpoint& one, bool there) = 0;
    virtual void catch_calls(CaughtCalls calls) = 0;
    // Whether a new child stops the thread that has made it.
    virtual void catch_forks(bool forks, bool vforks) = 0;
};

class Debuggee {
public:
    Debuggee() = default;
    Debuggee(const Debuggee&) = delete;
    Debuggee& operator=(const Debuggee&) = delete;
    virtual ~Debuggee() = default;

    [[nodiscard]] virtual pid_t pid() const = 0;
    // To be awaited before anything but its threads' names is asked of a child that has just been
    // born, and before it continues; detach() does without. False if it cannot be debugged.
    virtual Task<bool> prepare() = 0;
    // Whether it was begun for the debugger, which then ends it when it goes.
    [[nodiscard]] virtual bool was_started() const = 0;
    // Ascending, by the program's own ids.
    [[nodiscard]] virtual std::vector<pid_t> threads() const = 0;
    // For people: where the thread ran before it was stopped.
    [[nodiscard]] virtual std::string place_of(pid_t tid) const = 0;
    // nullopt: no such thread.
    [[nodiscard]] virtual std::optional<Registers> registers(pid_t tid) const = 0;
    virtual bool set_registers(pid_t tid, const Registers& registers) = 0;
    // The signal that stopped the thread last.
    [[nodiscard]] virtual std::optional<siginfo_t> signal_info(pid_t tid) const = 0;
    virtual DebuggeeTraps& traps() = 0;
    virtual DebuggeeMemory& memory() = 0;  // another object after an exec

    // Lets these threads continue; others stay stopped. GdbServer::on_stop is called when all are
    // stopped again, or the process has ended.
    virtual void go_on(const std::vector<Continuation>& threads) = 0;
    // Stops the process if it runs, with this signal as the reason; 0: none.
    virtual void interrupt(int signal) = 0;
    virtual void kill() = 0;
    // Lets the process continue without breakpoints. Its stops are not reported any more.
    virtual void detach() = 0;
    // Answers "monitor gpr ..." with text for people.
    virtual Task<std::string> command(std::string words) = 0;
};

}  // namespace gpr::debug
