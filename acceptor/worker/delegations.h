// Files of home that home has delegated (monitor/home/delegations.h): calls about them are answered
// here. docs/decisions/0068-read-delegation.md
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "acceptor/worker/part.h"
#include "syscall/marshal.h"
#include "transport/wire.h"

namespace gpr {
class DelegatedFile;
}  // namespace gpr

namespace gpr::worker {

class Delegations {
public:
    explicit Delegations(Worker& worker) : worker_(worker) {}

    // For tests: home is not asked for any.
    void turn_off() { is_off_ = true; }
    // Whether a file that this call opens could be answered for.
    [[nodiscard]] bool wants(const RemoteProcess& process, const RemoteThread& thread,
                             const Notification& n) const;
    // Home's answer to a call that has opened a file. The file's content, at the end of `raw`, is
    // taken away from it.
    void note(RemoteThread& thread, wire::CallReply::Reader reply, std::vector<std::byte>& raw);

    // True: the call has been answered, or its caller is gone. False: it is to be made as always;
    // what it must not find delegated has been given back.
    Task<bool> answer(RemoteProcess& process, RemoteThread& thread, Notification n);
    // To be called before a thread goes home, in order with it.
    void give_back_all(RemoteProcess& process);
    // Home wants a file back.
    void on_recall(const Frame& frame);

private:
    Task<bool> read(RemoteProcess& process, RemoteThread& thread, Notification n, int number);
    bool close(RemoteProcess& process, RemoteThread& thread, const Notification& n);
    Task<bool> give_status(RemoteProcess& process, RemoteThread& thread, Notification n,
                           int number);
    Task<bool> fetch(RemoteProcess& process, RemoteThread& thread, int number, uint64_t at,
                     uint64_t most);
    DelegatedFile* find(pid_t pid, int number, uint64_t id);
    void give_back(RemoteProcess& process, int number);
    void send_back(pid_t pid, int number, uint64_t id, uint64_t offset);
    void end_call(RemoteThread& thread, const Notification& n, int64_t result);

    Worker& worker_;
    bool is_off_ = false;
    std::set<uint64_t> recalled_;  // files that home wants back, and that have not arrived yet
};

}  // namespace gpr::worker
