// Taking over a running process: all its threads are seized and stopped where they are, and make
// calls for us there. Then the process either continues under a supervisor or is released as it
// was.
//
// This blocks, and must run in the thread that will trace the process: a ptrace tracer is one
// thread.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/address.h"
#include "base/fd.h"
#include "base/result.h"
#include "monitor/tracee/cpu_modes.h"
#include "monitor/tracee/files_limit.h"
#include "monitor/tracee/interval_timer.h"
#include "monitor/tracee/mapping_flags.h"
#include "monitor/tracee/memory_policy.h"
#include "monitor/tracee/remote_memory_raw.h"
#include "monitor/tracee/rseq_area.h"
#include "monitor/tracee/waits.h"

namespace gpr {

struct StoppedThread {
    pid_t tid = 0;
    user_regs_struct regs{};   // at the stop, perhaps inside a system call
    uint64_t signal_mask = 0;  // bit n-1 is signal n
    bool by_job_control = false;
    uint64_t clear_tid = 0;  // set_tid_address(2)
    RseqArea rseq;
    CpuModes cpu_modes;
    MemoryPolicy memory_policy;
    // It is in a call with a timeout, which began then and which this kernel has to begin again.
    std::optional<std::chrono::steady_clock::time_point> waits_since;
};

class Infection {
public:
    // Errors: a thread cannot be traced (with ptrace's errno), or does not stop in time (with the
    // call that it is in). The process continues in either case.
    static Result<Infection> begin(pid_t pid, std::chrono::milliseconds patience);
    // Restores and releases the process, unless it has been handed over.
    ~Infection();
    Infection(Infection&& other) noexcept;
    Infection& operator=(Infection&&) = delete;

    [[nodiscard]] pid_t pid() const { return pid_; }
    [[nodiscard]] const std::vector<StoppedThread>& threads() const { return threads_; }

    // Reads what only the threads themselves can ask the kernel for: clear_child_tid, the CPU modes
    // and the memory policy. Unregisters their rseq areas.
    Result<> take_thread_state();
    // Disarms its interval timers on CPU time, ITIMER_VIRTUAL and ITIMER_PROF, and returns those
    // that were armed. Armed again on release.
    Result<std::vector<IntervalTimer>> take_cpu_timers();
    // Reads what only the kernel knows of its memory, in which nothing may change meanwhile.
    Result<MemoryState> read_memory();
    // Unlocks what mlock(2) and mlockall(2) have locked, because locked pages cannot be moved.
    // Locked again on release.
    Result<> unlock(const MemoryState& memory);
    // Closes a descriptor of the process.
    Result<> close_descriptor(int number);

    // For a process whose calls are reported already: `serve` reads them while we wait for ours.
    void serve_calls_by(std::function<void()> serve) { serve_ = std::move(serve); }

    // The process, stopped and traced with these options, passed to the supervisor.
    struct Taken {
        pid_t pid = 0;
        std::vector<StoppedThread> threads;
        Fd listener;
        std::chrono::steady_clock::time_point since{};  // when it was stopped
        // Filled in by the caller of hand_over().
        MemoryState memory;
        FilesLimit files_limit;
    };
    Result<Taken> hand_over(long ptrace_options);
    // Undoes what was done to the process. It stays traced, and its threads stay stopped.
    void give_back();
    // Threads that have ended, or stopped on their way to their end, while they made our calls.
    // Whoever supervises them hears of that here only.
    struct End {
        pid_t tid = 0;
        WaitStatus status;
    };
    [[nodiscard]] std::vector<End> take_ends() { return std::exchange(ends_, {}); }
    // For detaching from a process. Its threads are stopped and have nothing of ours in them but
    // what `taken` names; the destructor releases them.
    explicit Infection(Taken taken);
    Result<> unmap(Range range);
    // Extends the kernel's own stack mapping down to `to` and writes this content at its new lower
    // end.
    Result<> grow_stack(Address to, std::span<const std::byte> content);
    // Makes the lowest page of memory that grows anew, with this protection: the kernel extends
    // only what was mapped so.
    Result<> let_grow(Address page, int prot);
    // Lets the threads' calls with timeouts begin again, each with what is left of its time: the
    // kernel remembers the rest of the time of an interrupted call.
    void renew_waits();
    // Reaps its children that were our helpers and have ended.
    void reap(std::span<const pid_t> children);
    struct LockedRange {
        Range range;
        bool on_fault = false;
    };
    void lock_again(std::vector<LockedRange> ranges, LockOfNew of_new) {
        unlocked_ = std::move(ranges);
        lock_of_new_ = of_new;
    }

private:
    friend class InfectedFilters;
    explicit Infection(pid_t pid) : pid_(pid) {}

    Result<> seize_all(std::chrono::steady_clock::time_point until);
    Result<bool> seize_new();
    Result<> await_stop(StoppedThread& thread, std::chrono::steady_clock::time_point until);
    Result<> prepare_calls();
    // Makes a call in the thread and restores its registers. Errors carry the kernel's errno.
    Result<int64_t> call(StoppedThread& thread, uint64_t number,
                         std::initializer_list<uint64_t> arguments);
    Result<WaitStatus> await_step(pid_t tid);
    bool meets_end_beside(pid_t tid);
    static constexpr uint64_t room_size = 16 * page_size;
    Result<> open_room();
    void close_room();
    void close_gate();
    // at: of the mapping there; 0: of the thread.
    MemoryPolicy memory_policy_in(StoppedThread& thread, const RemoteMemory& memory, Address at);
    Result<> read_policies(std::vector<MappingFlags>& mappings);
    void lock_as_before();
    Result<CpuModes> cpu_modes_of(StoppedThread& thread, const RemoteMemory& memory);
    void tell_thread_state(StoppedThread& thread);
    Result<> renew_wait(StoppedThread& thread);
    Result<user_regs_struct> interrupted_at_once(StoppedThread& thread, user_regs_struct regs);
    void undo();
    Result<> forget_rseq(StoppedThread& thread);
    void let_go();

    pid_t pid_ = 0;
    std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
    std::vector<StoppedThread> threads_;  // main thread first
    Address own_instruction_{};           // a system call instruction of the program
    Address syscall_instruction_{};       // the one that our calls use
    Address room_{};                      // memory of the process that we use for a while; 0: none
    std::vector<LockedRange> unlocked_;
    LockOfNew lock_of_new_ = LockOfNew::none;
    std::vector<IntervalTimer> disarmed_;
    Fd listener_;  // of the filter, once it is installed
    std::function<void()> serve_;
    std::vector<End> ends_;
    bool ended_ = false;  // the process was killed, and makes no call any more
};

}  // namespace gpr
