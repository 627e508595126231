// What `gpr exec` and `gpr attach` have in common: they greet the acceptors and prepare the session
// before they change anything in the process.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/task.h"
#include "monitor/control/gdb_entry.h"
#include "monitor/home/session.h"
#include "monitor/home/session_outputs.h"
#include "monitor/launch/connections.h"
#include "monitor/launch/run.h"
#include "transport/metrics_server.h"

namespace gpr {

class CallWatch;
class DirectoryRecord;
class Link;
class Loop;
class NameWatch;
class Progress;
class SessionControl;
class TraceConnection;
class Waits;

class SessionHost {
public:
    // program: the process whose limit of open files counts. name: for the progress display. All
    // references must outlive this object. Errors tell the user what prevents the session.
    static Result<std::unique_ptr<SessionHost>> prepare(const ExecOptions& options,
                                                        SessionOutputs& outputs,
                                                        const StartLocalAcceptor& start_local,
                                                        pid_t program, const std::string& name);
    ~SessionHost();
    SessionHost(const SessionHost&) = delete;
    SessionHost& operator=(const SessionHost&) = delete;

    // An acceptor as it has described itself.
    struct Peer {
        std::string name;
        Welcome welcome;
        FdRange fds;
        std::vector<std::string> lacking;  // CPU features that it lacks
    };
    [[nodiscard]] const std::vector<Peer>& peers() const { return peers_; }
    // The lowest descriptor number of an acceptor; 0: none has descriptors.
    [[nodiscard]] int fd_base() const;
    [[nodiscard]] bool watches_calls() const { return watches_calls_; }
    [[nodiscard]] bool watches_names() const { return watches_names_; }

    // Before the session is made: listens for a gdb that is wanted.
    Result<> await_gdb(const GdbWanted& wanted);
    // Makes the session, the last step that may fail.
    Result<> make_session();
    // `gpr move`: the program comes home and goes on at another acceptor, in place of the only one.
    // On an error it is where it was, or rests at home.
    struct Move {
        AcceptorAddress to;
        std::string from;  // name or address of the acceptor that is left; empty: the only one
        std::string token_file;  // empty: the session's own
        NodeId node = 1;         // of the acceptor that is left; move() finds it
    };
    Task<Result<>> move(Move move);
    // Where the program goes on that this session has detached for that.
    [[nodiscard]] const std::optional<Move>& next() const { return next_; }
    // From now on what happens goes to this socket, from which the order is read.
    Result<> trace_to(Fd reader);
    // Answers `gpr ps` and its like from now on; else run() begins with that.
    void begin_control();
    HomeSession& session() { return *session_; }
    Loop& loop() { return *loop_; }
    // Runs until the session is over. Returns the monitor's exit status.
    int run();

private:
    SessionHost(ExecOptions options, SessionOutputs& outputs);
    Result<> connect(const StartLocalAcceptor& start_local, const std::string& name);
    Result<EstablishedAcceptor> greet(NodeId node, const StartLocalAcceptor& start_local);
    Result<EstablishedAcceptor> greet_and_prepare(NodeId node,
                                                  const StartLocalAcceptor& start_local);
    Result<> prepare_alone();
    Result<> compare(pid_t program);

    std::unique_ptr<Progress> progress_of(Link& link);
    Result<NodeId> node_to_leave(const Move& move) const;
    Result<> can_move(const EstablishedAcceptor& to, NodeId node) const;
    Task<Result<EstablishedAcceptor>> greet(const Move& to);
    Task<Result<>> leave_for(Move to);
    void take_over(EstablishedAcceptor connected, const Move& move);

    ExecOptions options_;
    SessionOutputs& outputs_;
    pid_t program_ = 0;
    std::string id_;  // of the session, for its acceptors
    HostDescription own_host_;
    bool moves_ = false;
    std::optional<Move> next_;
    std::optional<MetricsServer> metrics_;  // until the session runs
    std::optional<GdbEntry> gdb_;
    std::vector<Peer> peers_;
    std::vector<EstablishedAcceptor> connected_;
    std::unique_ptr<Loop> loop_;
    std::unique_ptr<Waits> waits_;
    Fd stub_code_;                           // until the session is made
    std::unique_ptr<CallWatch> call_watch_;  // the same
    std::unique_ptr<NameWatch> name_watch_;  // the same
    std::unique_ptr<DirectoryRecord> record_;
    std::vector<std::unique_ptr<Link>> links_, former_links_;
    std::unique_ptr<HomeSession> session_;
    std::shared_ptr<TraceConnection> trace_;
    std::vector<std::unique_ptr<Progress>> progress_;
    bool watches_calls_ = false, watches_names_ = false;
    std::unique_ptr<SessionControl> control_;
};

// The filter for a process at home in such a session.
std::vector<sock_filter> home_filter_for(const ExecOptions& options, int fd_base,
                                         bool watches_calls);

}  // namespace gpr
