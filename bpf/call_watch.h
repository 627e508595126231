// Observes system calls that are not stopped: which threads of this node wait for futexes, which
// wakes may concern another node (docs/decisions/0016-watch-futexes.md), and which threads open
// files that show a process or are interrupted. The kernel's part is call_watch.bpf.c. While a
// watch exists, it adds some 60 ns to every system call on this host.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "bpf/call_layout.h"
#include "bpf/loaded_programs.h"

struct ring_buffer;

namespace gpr {

// The set of pages, by hash, in which threads of a node may wait. It may contain too many pages,
// but never too few.
class WaiterSummary {
public:
    std::array<uint64_t, GPR_WAITER_WORDS> words{};

    static WaiterSummary everything();
    [[nodiscard]] bool may_wait(uint64_t address) const;
    void join(const WaiterSummary& other) {
        for (size_t i = 0; i < words.size(); i++) words[i] |= other.words[i];
    }
    bool operator==(const WaiterSummary&) const = default;
};

struct WatchedWake {
    pid_t pid = 0;  // the name given to join()
    pid_t tid = 0;  // of the caller, in its own pid namespace; 0: unknown
    uint64_t address = 0;
    int32_t count = 0;
    uint32_t bitset = 0;
};

// Which threads get a SIGSTOP at the end of a call, with si_code SI_KERNEL. Their tracer must
// handle that signal.
struct StopsAtEnd {
    // Of one that opened mem, maps, smaps, status, stat, statm, wchan, cmdline, environ or children
    // of any process in a /proc.
    bool openers = false;
    // Of one that ended with EINTR, unless another stop comes anyway or a signal of job control is
    // pending.
    bool interrupted = false;
};

// For futexes of processes that joined it reports FUTEX_WAKE and FUTEX_WAKE_BITSET with
// FUTEX_PRIVATE_FLAG. Other wakes, and requeues, are reported by the supervisor, which stops those
// calls.
class CallWatch {
public:
    // Needs CAP_BPF and CAP_PERFMON; takes some 10 ms.
    static Result<std::unique_ptr<CallWatch>> load();
    ~CallWatch();
    CallWatch(const CallWatch&) = delete;
    CallWatch& operator=(const CallWatch&) = delete;

    // Reports wakes of process `pid` under `name`. Call it again after each exec. Threads that are
    // already waiting are counted as long as the watch lives.
    Result<> join(pid_t pid, pid_t name, StopsAtEnd stops);

    // If it is read after a page was taken away, it includes all threads that may have seen the
    // page's old content.
    [[nodiscard]] WaiterSummary waiting() const;
    // Counts a waiter at this page for as long as the watch lives: used after a requeue.
    void count_for_ever(uint64_t address);
    // Sets where threads of other nodes wait. Call it before the program can see a page that came
    // with the same frame. Initially it is everything.
    void set_elsewhere(const WaiterSummary& summary);

    // Becomes readable when there are wakes to fetch.
    [[nodiscard]] int fd() const { return wakes_; }
    void fetch(const std::function<void(const WatchedWake&)>& tell);

private:
    CallWatch() = default;
    Result<> open();
    void fetch_spilled();
    static int on_wake(void* self, void* data, size_t size);

    std::optional<LoadedPrograms> programs_;
    std::vector<Fd> attached_;
    ring_buffer* ring_ = nullptr;
    int members_ = -1, wakes_ = -1, spilled_ = -1;  // of programs_
    gpr_futex_state* state_ = nullptr;              // mapped
    uint32_t spilled_seen_ = 0;
    const std::function<void(const WatchedWake&)>* tell_ = nullptr;  // during fetch()
};

}  // namespace gpr
