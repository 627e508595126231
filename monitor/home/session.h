// The session as node 0 runs it: receives all events and passes each to the part that it concerns.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "monitor/home/acceptors.h"
#include "monitor/tracee/infection.h"

namespace gpr {

class CallWatch;
class NameWatch;
class DirectoryRecord;
class Error;
class FilesLimit;
class Loop;
class ReceivedFrame;
class SessionOutputs;
class Waits;
struct ExecOptions;
struct HomeProcess;
struct HomeThread;
struct Notification;
struct WaitStatus;

namespace home {
class EventStream;
class IdleHome;
struct Home;
}  // namespace home

class HomeSession {
public:
    HomeSession(Loop& loop, Waits& waits, home::Acceptors acceptors, const ExecOptions& options,
                SessionOutputs& outputs, Fd stub_code);
    ~HomeSession();
    HomeSession(const HomeSession&) = delete;
    HomeSession& operator=(const HomeSession&) = delete;

    void record(DirectoryRecord& to);
    // root must be seized, have the filter and be about to exec.
    void start(pid_t root, Fd listener);
    // Before adopt(): no process of the session gets a seccomp filter. filter: what it would
    // report.
    void report_by_stops(std::vector<sock_filter> filter);
    // The same if processes rest at first: root has resting_filter(), and `filter` is for processes
    // that are split later.
    void start_resting(pid_t root, std::vector<sock_filter> filter);
    // After start(): the program's limit of open files, which is lowered while acceptors have
    // descriptors.
    void note_files_limit(const FilesLimit& before);
    // After start(): the program waits for a debugger before its first instruction.
    void await_debugger();
    // The same for processes that run already, of which the first is the program. is_attached is
    // called when all continue.
    void adopt(std::vector<Infection::Taken> taken, std::function<void()> is_attached);
    // The program leaves its acceptors: detachment.h. done is called with the result.
    void detach(std::function<void(const Result<>&)> done);
    // Processes that continue without the session.
    [[nodiscard]] const std::vector<pid_t>& detached() const;
    // Before start(): of the profiles on standby, the acceptor has files for these.
    void keep_standby(NodeId node, const std::vector<std::string>& profiles);
    // The program goes on at another acceptor: Detachment.
    Task<Result<std::vector<pid_t>>> begin_move();
    void replace_acceptor(NodeId node, Link& link, bool keeps_contents);
    void end_move(const std::vector<pid_t>& were_away);
    // Optional, before start(), either may be null: private wakes are reported by the one instead
    // of being intercepted; and root has a resting_filter() that does not stop for names, which
    // the other does.
    void watch(std::unique_ptr<CallWatch> calls, std::unique_ptr<NameWatch> names);
    // For monitor/control, which shows it to others.
    [[nodiscard]] home::Home& state();
    [[nodiscard]] home::EventStream& events() { return *events_; }
    // Why the session failed; empty if it did not.
    [[nodiscard]] const std::string& failure() const;
    [[nodiscard]] bool waits_for_pages() const;

private:
    HomeProcess& begin(pid_t root);
    void listen(HomeProcess& process, Fd listener);
    void hear(home::RemoteNode& node);
    void take_faults();
    void on_wait(pid_t tid, WaitStatus status);
    void on_event(HomeThread& thread, int event);
    void on_filter_stop(HomeThread& thread);
    void on_notification(const Notification& n);
    void on_call(HomeThread& thread, const Notification& n);
    void on_frame(home::RemoteNode& node, ReceivedFrame&& frame);
    void on_pages(home::RemoteNode& node, const std::shared_ptr<ReceivedFrame>& frame);
    void on_link_closed(const home::RemoteNode& node, const Error& reason);

    std::unique_ptr<home::Home> home_;
    std::unique_ptr<home::EventStream> events_;
    std::unique_ptr<home::IdleHome> idle_;
};

}  // namespace gpr
