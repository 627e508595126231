#include "monitor/home/kept_calls.h"

#include <sys/syscall.h>

#include "base/log.h"
#include "monitor/home/acceptor_files.h"
#include "monitor/home/fd_names.h"
#include "monitor/home/home.h"
#include "monitor/home/proxy_calls.h"

namespace gpr::home {

namespace {
constexpr std::chrono::seconds acceptor_patience{5};  // for calls that do not wait
}  // namespace

KeptCalls::KeptCalls(Home& home) : home_(home), questions_(home.loop) {}

void KeptCalls::on_birth(const HomeProcess& parent, const HomeProcess& child) {
    if (!known_.contains(parent.pid) || !home_.acceptors.reachable()) return;
    note_known(child.pid);
    FrameBuilder frame;
    auto heir = frame.session().initHeir();
    heir.setParent(parent.pid);
    heir.setChild(child.pid);
    home_.acceptors.each([&](RemoteNode& node) {
        if (node.fd_base != 0) node.link.send(frame, Priority::urgent);
    });
}

bool KeptCalls::knows(uint32_t number) {
    return number == SYS_close || number == SYS_close_range || number == SYS_fcntl ||
           number == SYS_dup2 || number == SYS_dup3;
}

// For a range of descriptors every acceptor closes its part.
Task<void> KeptCalls::make(pid_t pid, Notification n) {
    auto owner = home_.acceptor_files.owner_of(n);
    if (!home_.acceptors.reachable() || !owner) {
        home_.notifier->let_it_run(n.id);
        co_return;
    }
    std::shared_ptr<ProxyCall> call = co_await home_.proxy_calls.begin(pid, n);
    if (!call) co_return;
    if (n.number == SYS_close_range) {
        for (NodeId node = 1; node <= *owner; node++) {
            if (home_.acceptors.at(node).fd_base != 0) co_await ask(pid, n, node);
        }
        home_.proxy_calls.finish(pid, n, call, std::nullopt);  // and home closes its own
        co_return;
    }
    Answer answer = co_await ask(pid, n, *owner);
    std::optional<int64_t> result = answer.result;
    if (answer.result >= 0 && answer.file != 0) {
        result = home_.fd_names.name_for_vfork_child(n, *owner, answer.file);
        const bool interrupted = *result == -ENOENT && !home_.notifier->still_valid(n.id);
        if (interrupted) result.reset();  // dup2 may be made twice
    }
    home_.proxy_calls.finish(pid, n, call, result);
}

Task<KeptCalls::Answer> KeptCalls::ask(pid_t pid, Notification n, NodeId owner) {
    Link& link = home_.acceptors.at(owner).link;
    FrameBuilder frame;
    auto call = frame.session().initKeptCall();
    const uint32_t cookie = questions_.begin();
    call.setCookie(cookie);
    call.setPid(pid);
    call.setNumber(n.number);
    auto list = call.initArgs(6);
    for (unsigned i = 0; i < 6; i++) list.set(i, n.args[i]);
    link.send(frame, Priority::urgent);
    auto timer = home_.loop.after(acceptor_patience, [&link] {
        link.close("it did not answer a call about a descriptor in time");
    });
    Answer answer = co_await questions_.answer_to(cookie);
    home_.loop.cancel(timer);
    co_return answer;
}

void KeptCalls::on_done(wire::KeptDone::Reader done) {
    questions_.answer(done.getCookie(), {done.getResult(), done.getFile()});
}

}  // namespace gpr::home
