#include "monitor/paging/pager.h"

#include <poll.h>

#include <utility>
#include <variant>

namespace gpr {

namespace {

template <class... Handlers>
struct Overloaded : Handlers... {
    using Handlers::operator()...;
};

}  // namespace

Pager::Pager(NodeId self, Loop& loop, PageDirectory* directory, Send send)
    : core(self, loop, directory, *this), messages(core, *this, std::move(send)) {}

PagerStats Pager::stats() const {
    const AgentStats& s = core.agent.stats();
    return {faults.count(), s.pages_in, s.pages_out, faults.waited_ns()};
}

void Pager::add_fragment(Fragment& fragment) {
    core.fragments[&fragment] = core.loop.watch(
        fragment.uffd(), POLLIN, [this, &fragment](uint32_t) { faults.read(fragment); });
}

void Pager::remove_fragment(Fragment& fragment) {
    core.fragments.erase(&fragment);
    unfilled.forget(fragment);
    forks.forget(fragment);
}

void Pager::on_message(NodeId from, Message message) { messages.receive(from, std::move(message)); }

void Pager::on_progress(Tid tid) {
    core.agent.on_progress(tid, core.now());
    core.settle();
}

void Pager::on_past_progress(Tid tid) {
    core.agent.on_past_progress(tid, core.now());
    core.settle();
}

void Pager::on_thread_gone(Tid tid) {
    absent.forget(tid);
    faults.forget(tid);
    core.agent.on_thread_gone(tid, core.now());
    core.settle();
}

void Pager::on_thread_end(Tid tid) {
    hot.forget(tid);
    core.agent.forget_thread(tid);
    on_thread_gone(tid);
    traffic.forget(tid);
}

void Pager::run(Action& action) {
    std::visit(Overloaded{
                   [this](const Install& a) { installs.install(a); },
                   [this](const Unprotect& a) { installs.unprotect(a); },
                   [this](const Take& a) { takes.begin(a); },
                   [this](const FindTouched& a) { takes.find_touched(a); },
                   [this](SendMessage& a) { messages.send(a); },
                   [this](const Wake& a) { installs.wake(a); },
                   [this](const AcquireDone& a) { core.answer(a.cookie, !a.refused); },
                   [this](const Anchored& a) { pinned.on_anchored(a); },
                   [this](const CollectDone& a) { core.answer(a.cookie, a.left_behind == 0); },
               },
               action);
}

}  // namespace gpr
