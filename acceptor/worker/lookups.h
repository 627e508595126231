// Look-ups of paths at home that are answered here, because home has said that its answer holds
// (monitor/home/lookups.h). docs/decisions/0071-look-ups-are-remembered.md
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "acceptor/worker/part.h"
#include "syscall/lookup_call.h"
#include "syscall/marshal.h"
#include "transport/wire.h"

namespace gpr::worker {

class Lookups {
public:
    explicit Lookups(Worker& worker) : worker_(worker) {}

    // For tests: nothing is remembered.
    void turn_off() { is_off_ = true; }

    // True: the call has been answered, or its caller is gone. False: it is to be made as always.
    Task<bool> answer(RemoteProcess& process, RemoteThread& thread, Notification n);

    // The call of this notification as answer() found it in the program's memory, which it only
    // reads once. Another call may have come between.
    std::optional<MarshalledCall> take_marshalled(const Notification& n);

    // This call is about to be sent to home. Returns whether its answer may be remembered.
    bool wants(const RemoteProcess& process, const RemoteThread& thread,
               const MarshalledCall& sent);
    // Home makes a call for the process.
    static void note_call(RemoteProcess& process, uint32_t number);
    // Both to be called as the frame arrives, in the order of home's frames.
    void on_answer(wire::CallReply::Reader reply, std::span<const std::byte> raw);
    void on_gone(const Frame& frame);

private:
    [[nodiscard]] bool is_remembered(const RemoteProcess& process, const RemoteThread& thread,
                                     const MarshalledCall& call) const;

    Worker& worker_;
    bool is_off_ = false;
    uint32_t last_gone_ = 0;  // serial
    std::optional<std::pair<uint64_t, MarshalledCall>> marshalled_;
    // What threads have asked home, by pid and tid.
    std::map<std::pair<pid_t, pid_t>, MarshalledCall> asked_;
};

}  // namespace gpr::worker
