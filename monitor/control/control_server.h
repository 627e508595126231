// Answers queries about a session over a unix socket: one line in, one answer out, then the
// connection closes, or is handed over for another protocol. A client that sends nothing, sends
// too much or does not read is dropped after a while.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "base/task.h"
#include "monitor/control/control_folder.h"
#include "transport/loop.h"

namespace gpr {

class ControlServer {
public:
    struct Answer {
        std::string text;
        std::function<void(Fd)> takes_over;  // gets the connection once the text has been sent
    };
    // by: the client's user.
    using Answering = std::function<Task<Answer>(std::string request, uid_t by)>;

    // Listens in the folder, for the session of the program with this pid.
    static Result<std::unique_ptr<ControlServer>> create(Loop& loop, ControlFolder folder,
                                                         pid_t pid, Answering answer);
    ~ControlServer();
    ControlServer(const ControlServer&) = delete;
    ControlServer& operator=(const ControlServer&) = delete;

    [[nodiscard]] std::string path() const { return folder_.path() + "/" + name_; }

private:
    struct Connection;

    ControlServer(Loop& loop, ControlFolder folder, Answering answer);
    Result<> listen(pid_t pid);
    void watch();
    void accept();
    bool make_room();
    void read(uint64_t id);
    static Task<void> give_answer(ControlServer* server, uint64_t id, std::string request);
    void write(uint64_t id);
    void finish(uint64_t id);
    void set_deadline(uint64_t id, std::chrono::seconds patience);
    void drop(uint64_t id);

    Loop& loop_;
    ControlFolder folder_;
    Answering answer_;
    std::string name_;  // name of the socket in its folder; empty: none
    Fd listener_;
    Watch watch_;
    Loop::TimerId pause_ = 0;
    uint64_t last_id_ = 0;
    std::map<uint64_t, std::unique_ptr<Connection>> connections_;
};

}  // namespace gpr
