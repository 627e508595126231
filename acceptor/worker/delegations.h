// Files of home that home has delegated (monitor/home/delegations.h): calls about them are answered
// here. docs/decisions/0068-read-delegation.md
#pragma once

#include <cstdint>
#include <map>
#include <optional>
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
    // Around a call that may open such a file, until home has answered and note() has been called.
    uint64_t begin_to_open();
    void end_to_open(uint64_t opening);
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
    Task<std::optional<MarshalledCall>> marshalled(RemoteProcess& process, Notification n);
    Task<bool> read(RemoteProcess& process, RemoteThread& thread, Notification n, int number);
    Task<bool> list(RemoteProcess& process, RemoteThread& thread, Notification n, int number);
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
    // Of calls that may open a file and have not been answered. Numbers count up.
    std::set<uint64_t> openings_;
    uint64_t last_opening_ = 0;
    // Files that home wants back, and that may not have arrived yet: with the last of the calls
    // that may bring them.
    std::map<uint64_t, uint64_t> recalled_;
};

}  // namespace gpr::worker
