// The session as node 0 runs it. What happens comes in here, and goes to the part that it is about.
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
class DirectoryRecord;
class Error;
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
    // root is seized, has the filter and is about to exec.
    void start(pid_t root, Fd listener);
    // The same where processes rest at first: it has resting_filter(), and `filter` is for those
    // that do not rest any more.
    void start_resting(pid_t root, std::vector<sock_filter> filter);
    // Of a process that runs already.
    void adopt(Infection::Taken taken);
    // Ends the session; its program goes on here, natively but for the filter. done is told of it,
    // or of what is in the way, and the session goes on then.
    void detach(std::function<void(const Result<>&)> done);
    // Once the session is over: who has the filter and goes on needs somebody who lets calls run.
    [[nodiscard]] Fd listener() const;
    [[nodiscard]] const std::vector<pid_t>& detached() const;
    // Before start(): of the profiles that stand by that acceptor has something for these.
    void keep_standby(NodeId node, const std::vector<std::string>& profiles);
    // Before start(): private wakes are not stopped, the watch tells them.
    void watch_futexes(std::unique_ptr<CallWatch> watch);
    // For who shows it to others.
    [[nodiscard]] home::Home& state();
    // The reason the session failed; empty if it did not.
    [[nodiscard]] const std::string& failure() const;
    [[nodiscard]] bool waits_for_pages() const;

private:
    HomeProcess& begin(pid_t root);
    void listen(HomeProcess& process, Fd listener);
    void take_faults();
    void on_wait(pid_t tid, WaitStatus status);
    void on_event(HomeThread& thread, int event);
    void on_filter_stop(HomeThread& thread);
    void on_notification(const Notification& n);
    void on_call(HomeThread& thread, const Notification& n);
    void on_frame(home::RemoteNode& node, ReceivedFrame&& frame);
    void on_process_gone(home::RemoteNode& node, const std::shared_ptr<ReceivedFrame>& frame);
    void on_pages(home::RemoteNode& node, const std::shared_ptr<ReceivedFrame>& frame);
    void on_link_closed(const Error& reason);

    std::unique_ptr<home::Home> home_;
    std::shared_ptr<Fd> listener_;  // of a process that runs already
};

}  // namespace gpr
