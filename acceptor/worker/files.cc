#include "acceptor/worker/files.h"

#include <limits.h>
#include <linux/close_range.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "acceptor/worker/epolls.h"
#include "acceptor/worker/forwarding.h"
#include "acceptor/worker/signals.h"
#include "acceptor/worker/worker.h"
#include "base/log.h"
#include "syscall/table.h"

namespace gpr::worker {

// Decides by the path as the program's memory has it now. The kernel reads it again; if another
// thread has changed it, the sandbox still limits what it can find.
Task<void> Files::path_call(RemoteProcess& process, RemoteThread& thread, Notification n,
                            uint64_t path_at) {
    auto path = co_await worker_.pager.memory.read_text(*process.fragment, {path_at}, PATH_MAX);
    PathVerdict verdict = path ? rules_.owner_of(*path) : PathVerdict{};
    const Row* row = find_row(n.number);
    bool opens = row && row->opens_by_name();
    bool for_home = verdict.standby && verdict.owner == PathOwner::acceptor &&
                    !use_profile(verdict, *path, opens);
    if (verdict.owner == PathOwner::home || for_home) {
        co_await worker_.forwarding.forward(process, thread, n);
        co_return;
    }
    if (verdict.owner == PathOwner::whoever) {
        int64_t result = co_await worker_.forwarding.ask_home(process, thread, n, true);
        if (result == thread_gone && thread.stub->dead()) co_return;
        bool elsewhere =
            result == -ENOENT && (!verdict.standby || use_profile(verdict, *path, opens));
        if (!elsewhere) {
            worker_.forwarding.give_answer(thread, n.id, result);
            co_return;
        }
        worker_.signals.hand_over_answered(thread);
    }
    spdlog::debug("tid {}: {} is looked up here", thread.tid, *path);
    used_.insert(static_cast<uint32_t>(verdict.rule));
    worker_.counts.fd_owner++;
    process.notifier->let_it_run(n.id);
}

bool Files::use_profile(const PathVerdict& verdict, const std::string& path, bool opens) {
    if (access(path.c_str(), F_OK) != 0) return false;
    // Only opening a file puts its profile into effect, not looking for it.
    if (!opens) return true;
    const std::string name = rules_.all()[verdict.rule].standby;
    if (name.empty()) return true;  // it took effect meanwhile
    rules_.use(verdict.rule);
    worker_.pager.pinned.probe_for_pins();
    FrameBuilder frame;
    auto use = frame.session().initProfile();
    use.setName(name);
    use.setPath(path);
    worker_.link.send(frame, gpr::Priority::urgent);
    return true;
}

// The range may contain numbers of both nodes: each closes its own.
Task<void> Files::close_range_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    uint64_t first = static_cast<uint32_t>(n.args[0]), last = static_cast<uint32_t>(n.args[1]);
    co_await worker_.epolls.forget_epolls(process, first, last);
    if (process.fd_base == 0 || last < process.fd_base || first > last) {
        co_await worker_.forwarding.forward(process, thread, n);
        co_return;
    }
    uint64_t ours = std::max<uint64_t>(first, process.fd_base);
    int64_t closed = co_await process.fragment->executor().call(
        SYS_close_range, ours, last, n.args[2] & ~uint64_t{CLOSE_RANGE_UNSHARE});
    if (closed < 0 || first >= process.fd_base) {
        process.notifier->reply_raw(n.id, closed);
        co_return;
    }
    n.args[1] = process.fd_base - 1;
    // As a forwarded call: to move the thread home could loop, as it may have come to make it.
    int64_t result = co_await worker_.forwarding.ask_home(process, thread, n, true);
    if (result == thread_gone && thread.stub->dead()) co_return;
    worker_.forwarding.give_answer(thread, n.id, result);
}

}  // namespace gpr::worker
