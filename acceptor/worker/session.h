// The session on an acceptor: one worker, the fragments of the session's processes, one link to
// home. Receives all events and passes each to the part that it concerns.
#pragma once

#include <sys/types.h>

#include "acceptor/worker/event_reports.h"
#include "acceptor/worker/run_worker.h"
#include "acceptor/worker/worker.h"
#include "monitor/node/running_threads.h"

namespace gpr {

class WorkerSession {
public:
    WorkerSession(Loop& loop, Waits& waits, Link& link, Sandbox& sandbox, const Hello& peer,
                  Fd stub_code, WorkerOptions&& options);
    WorkerSession(const WorkerSession&) = delete;
    WorkerSession& operator=(const WorkerSession&) = delete;

private:
    void on_frame(ReceivedFrame&& frame);
    void on_notification(const Notification& n);
    void on_wait(pid_t host_tid, WaitStatus status);
    void on_pages(const std::shared_ptr<ReceivedFrame>& frame);
    void on_link_closed(const Error& reason);
    [[nodiscard]] bool nothing_runs();

    worker::Worker worker_;
    RunningThreads running_threads_;
    worker::EventReports event_reports_{worker_};
};

}  // namespace gpr
