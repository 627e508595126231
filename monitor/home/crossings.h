// Crossings of threads from home to an acceptor, and back.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "mm/page_protocol.h"
#include "monitor/home/crossing_places.h"
#include "monitor/home/part.h"

namespace gpr {
struct ThreadContext;
}  // namespace gpr

namespace gpr::home {

class Crossings {
public:
    explicit Crossings(Home& home) : home_(home) {}

    // The thread must be in a ptrace stop. visit: it goes for memory that only that acceptor may
    // use.
    Task<void> depart(HomeThread& thread, const ThreadContext& context, NodeId to, bool visit);
    // clear_tid: the address that its end clears, if the acceptor does not know it yet; else 0.
    Task<void> cross(HomeProcess& process, HomeThread& thread, const ThreadContext& context,
                     NodeId to, bool visit = false, uint64_t clear_tid = 0);
    // visit: the call can only be made there, whatever code makes it.
    Task<void> leave_at_call(HomeProcess& process, HomeThread& thread, NodeId to, bool visit);
    Task<void> arrive(Frame frame, NodeId from);

    // Where threads of the process crossed most since its image began, for whoever looks.
    [[nodiscard]] std::vector<CountedPlace> places_of(pid_t pid, size_t most) const;
    // The word that the end of this thread clears (set_tid_address) if the kernel of an acceptor
    // knows that, and home's does not; else 0. From now on home's shall.
    uint64_t take_cleared_word(pid_t pid, pid_t tid);
    void on_thread_end(pid_t pid, pid_t tid);
    // Its image has ended.
    void forget_places(pid_t pid) {
        places_.erase(pid);
        cleared_there_.erase(pid);
    }

private:
    struct ClearedWord {
        NodeId known_at;
        uint64_t address;
    };

    static std::optional<NodeId> goes_on_at(const HomeThread& thread, const ThreadContext& context);
    static Task<void> take_its_alt_stack(HomeThread& thread, Frame frame, NodeId from);
    void note_cleared_word(const HomeThread& thread, NodeId from, uint64_t address);

    Home& home_;
    std::map<pid_t, CrossingPlaces> places_;                       // by process
    std::map<pid_t, std::map<pid_t, ClearedWord>> cleared_there_;  // by process and thread
};

}  // namespace gpr::home
