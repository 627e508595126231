// What `gpr exec` and `gpr attach` have in common: the acceptors are greeted, and the session that
// the process will be in is made ready, before anything is done to the process.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "monitor/home/session.h"
#include "monitor/home/session_outputs.h"
#include "monitor/launch/connections.h"
#include "monitor/launch/run.h"
#include "transport/metrics_server.h"

namespace gpr {

class DirectoryRecord;
class Link;
class Loop;
class Progress;
class Waits;

class SessionHost {
public:
    // program: the process that it is about, whose limit of open files counts. name: what it is
    // called where progress is shown. All stay alive until this is gone. Errors say what is in the
    // way, for the user.
    static Result<std::unique_ptr<SessionHost>> prepare(const ExecOptions& options,
                                                        SessionOutputs& outputs,
                                                        const StartLocalAcceptor& start_local,
                                                        pid_t program, const std::string& name);
    ~SessionHost();
    SessionHost(const SessionHost&) = delete;
    SessionHost& operator=(const SessionHost&) = delete;

    // An acceptor as it has introduced itself.
    struct Peer {
        std::string name;
        Welcome welcome;
        FdRange fds;
        std::vector<std::string> lacking;  // CPU features
    };
    [[nodiscard]] const std::vector<Peer>& peers() const { return peers_; }
    // From here on descriptors are acceptors'; 0: they have none.
    [[nodiscard]] int fd_base() const;
    [[nodiscard]] bool watches_calls() const { return watches_calls_; }

    // Makes the session; nothing can be in the user's way any more but what its errors say.
    Result<> make_session();
    HomeSession& session() { return *session_; }
    Loop& loop() { return *loop_; }
    // Until the session is over. Gives the exit status of its monitor.
    int run();

private:
    SessionHost(const ExecOptions& options, SessionOutputs& outputs);
    Result<> connect(const StartLocalAcceptor& start_local, const std::string& name);
    Result<> compare(pid_t program);

    const ExecOptions& options_;
    SessionOutputs& outputs_;
    pid_t program_ = 0;
    std::optional<MetricsServer> metrics_;  // until the session runs
    std::vector<Peer> peers_;
    std::vector<EstablishedAcceptor> connected_;
    std::unique_ptr<Loop> loop_;
    std::unique_ptr<Waits> waits_;
    std::unique_ptr<DirectoryRecord> record_;
    std::vector<std::unique_ptr<Link>> links_;
    std::unique_ptr<HomeSession> session_;
    std::vector<std::unique_ptr<Progress>> progress_;
    bool watches_calls_ = false;
};

// The filter that a process at home gets in such a session.
std::vector<sock_filter> home_filter_for(const ExecOptions& options, int fd_base,
                                         bool watches_calls);

}  // namespace gpr
