// What threads do on this node in calls that nobody stops: who waits for futexes, and what is waked
// that another node must hear of (DESIGN 4.4); who opens files that show a process. The kernel's
// side is call_watch.bpf.c; it costs every system call on this host some 60 ns while a watch
// exists.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/result.h"
#include "bpf/call_layout.h"

struct bpf_object;
struct bpf_link;
struct ring_buffer;

namespace gpr {

// A set of pages, by a hash, in which threads of a node may wait: never one too few.
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
    pid_t pid = 0;  // the name that the process joined under
    pid_t tid = 0;  // of the caller, in its own pid namespace; 0: not known any more
    uint64_t address = 0;
    int32_t count = 0;
    uint32_t bitset = 0;
};

// Whether threads that open mem, maps, smaps, status, stat, statm, wchan, cmdline, environ or
// children of whatever is in a /proc get a SIGSTOP of their own at the end of that call, with
// si_code SI_KERNEL. Their tracer must see to it.
enum class Openers { go_on, stop };

// Of the futexes of processes that joined it tells FUTEX_WAKE and FUTEX_WAKE_BITSET with
// FUTEX_PRIVATE_FLAG. Others, and what requeues, are for whoever stops them.
class CallWatch {
public:
    // Needs CAP_BPF and CAP_PERFMON; takes some 10 ms.
    static Result<std::unique_ptr<CallWatch>> load();
    ~CallWatch();
    CallWatch(const CallWatch&) = delete;
    CallWatch& operator=(const CallWatch&) = delete;

    // Wakes of process `pid` are told under `name`. Again for every program that it executes.
    // Threads that wait already are counted as long as the watch lives.
    Result<> join(pid_t pid, pid_t name, Openers openers);

    // What is read after a page was taken away includes all who saw its old content.
    [[nodiscard]] WaiterSummary waiting() const;
    // Someone waits at this page for as long as the watch lives: after a requeue.
    void count_for_ever(uint64_t address);
    // Set before a page that came with it can be seen. Everything, in the beginning.
    void set_elsewhere(const WaiterSummary& summary);

    // Becomes readable when there are wakes to fetch.
    [[nodiscard]] int fd() const { return wakes_; }
    void fetch(const std::function<void(const WatchedWake&)>& tell);

private:
    CallWatch() = default;
    Result<> open();
    void fetch_spilled();
    static int on_wake(void* self, void* data, size_t size);

    bpf_object* object_ = nullptr;
    std::array<bpf_link*, 2> links_{};
    ring_buffer* ring_ = nullptr;
    int members_ = -1, wakes_ = -1, spilled_ = -1;  // of object_
    gpr_futex_state* state_ = nullptr;              // mapped
    uint32_t spilled_seen_ = 0;
    const std::function<void(const WatchedWake&)>* tell_ = nullptr;  // during fetch()
};

}  // namespace gpr
