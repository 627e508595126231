// Forwarding: calls of threads here that home makes. They are sent there with the memory that they
// need, and their answers come back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "acceptor/worker/part.h"
#include "syscall/marshal.h"

namespace gpr {
class FrameBuilder;
}  // namespace gpr

namespace gpr::worker {

struct NewTask;
class WaitHere;

class Forwarding {
public:
    explicit Forwarding(Worker& worker) : worker_(worker) {}

    // here: this node's part of the wait, if the call waits on both nodes.
    Task<void> forward(RemoteProcess& process, RemoteThread& thread, Notification n,
                       WaitHere* here = nullptr);
    Task<void> end_forwarded(RemoteProcess& process, RemoteThread& thread, Notification n,
                             int64_t result);
    void give_answer(RemoteThread& thread, uint64_t id, int64_t result);
    // Like forward(), but returns the result instead of giving it to the thread. met_shared: if
    // given and the call uses shared memory that is used at home, it is set and home is not asked.
    Task<int64_t> ask_home(RemoteProcess& process, RemoteThread& thread, const Notification& n,
                           bool reply, const NewTask* task = nullptr, bool* met_shared = nullptr,
                           uint32_t wait = 0, uint64_t file = 0);
    // For a call of our own, not of the program: returns home's answer to the caller.
    Task<int64_t> ask_prepared(RemoteThread& thread, const MarshalledCall& call,
                               std::vector<std::byte>& answer);
    Task<void> call_done(Frame frame);

    // Marshals the call with the memory that it needs, fetching missing pages. nullopt: *met_shared
    // was set.
    Task<std::optional<Marshalled>> marshal_here(RemoteProcess& process, const Notification& n,
                                                 bool wants_reply, bool* met_shared);
    // Writes an answer's data to where the call wanted it. Returns the call's result.
    Task<int64_t> write_answer(Fragment& fragment, const MarshalledCall& sent,
                               const std::vector<std::byte>& out, int64_t result);

    // A number for a wait at home, by which it can be interrupted.
    uint32_t next_wait();
    void interrupt_at_home(const RemoteThread& thread, uint32_t wait);

private:
    Task<int64_t> answer_to(RemoteThread& thread, FrameBuilder& frame);

    Worker& worker_;
    uint32_t last_wait_ = 0;
};

}  // namespace gpr::worker
