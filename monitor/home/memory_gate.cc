#include "monitor/home/memory_gate.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "monitor/home/failures.h"
#include "monitor/home/file_copies.h"
#include "monitor/home/functions.h"
#include "monitor/home/home.h"
#include "monitor/home/main_stack.h"
#include "monitor/home/shared_identity.h"
#include "monitor/home/vfork_children.h"
#include "monitor/node/address_change.h"
#include "monitor/tracee/sealed_memory.h"
#include "syscall/table.h"

namespace gpr::home {

namespace {
// Set in the numbers of marks that are relayed for an acceptor.
constexpr uint32_t relayed_bit = 1u << 31;
}  // namespace

bool MemoryGate::holds(HomeThread& thread, const Notification& n) {
    if (!is_told_unasked(n.number)) return false;
    HomeProcess& process = *thread.process;
    HomeProcess* of =
        process.shares_memory_with ? home_.vfork_children.owner_of_memory(process) : &process;
    if (!of) return false;
    bool is_split = of->state == HomeProcess::State::split && of->fragment;
    const AddressSpace& space = is_split ? of->fragment->space : of->marked;
    if (auto answer = answer_about_sealed(space, n.number, n.args, of->break_end)) {
        home_.notifier->reply_raw(n.id, *answer);
        return true;
    }
    if (!is_split) return false;
    if (n.number == number_mseal) {
        spawn(seal_here(of->pid, n));
        return true;
    }
    while (of->changes.size() < home_.acceptors.size()) {
        of->changes.push_back(std::make_shared<ChangeWindow>(home_.loop));
    }
    for (const auto& window : of->changes) {
        if (window->has_room()) continue;
        spawn(wait(window, n));
        return true;
    }
    home_.acceptors.each(
        [&](RemoteNode& node) { of->changes[node.id - 1u]->take(node.link, of->pid); });
    return false;
}

Task<void> MemoryGate::wait(std::shared_ptr<ChangeWindow> window, Notification n) {
    co_await window->moved();
    // Else a signal interrupted the call and the thread calls again, or it has ended.
    if (home_.notifier->still_valid(n.id)) home_.on_notification(n);
}

Task<void> MemoryGate::seal_here(pid_t pid, Notification n) {
    int64_t result = co_await seal(pid, {n.args[0], n.args[1], n.args[2]});
    home_.notifier->reply_raw(n.id, result);
}

Task<int64_t> MemoryGate::seal(pid_t pid, std::array<uint64_t, 3> args) {
    auto guard = co_await home_.metadata.lock();
    HomeProcess* process = home_.find_process(pid);
    if (!process || !process->fragment) co_return -ESRCH;
    AddressSpace& space = process->fragment->space;
    Sealing sealing = sealing_of(space, args.data());
    if (sealing.result == 0 && !sealing.range.empty()) {
        mark_sealed(space, sealing.range);
        home_.acceptors.tell(pid, Sealed{sealing.range});
    }
    co_return sealing.result;
}

Task<void> MemoryGate::open_text(pid_t pid, Range range) {
    auto guard = co_await home_.metadata.lock();
    HomeProcess* process = home_.find_process(pid);
    if (!process || !process->fragment) co_return;
    std::shared_ptr<Fragment> fragment = process->fragment;
    std::vector<Address> texts;
    fragment->space.for_each(range, [&](const Mapping& m) {
        bool text = !m.shared && !m.anchored && !(m.prot & PROT_WRITE) && m.file;
        bool as_mapped = m.trapped || m.backing == Backing::native_file;
        if (text && as_mapped) texts.push_back(m.range.begin);
    });
    for (Address at : texts) {
        Range text = fragment->space.find(at)->range;
        int prot = fragment->space.find(at)->prot;
        co_await home_.pager.trapped.stop_trapping(fragment, text);
        Mapping* m = fragment->space.find(at);
        process = home_.find_process(pid);
        if (!m || !process || process->fragment != fragment) co_return;
        m->functions.reset();
        m->digest.reset();
        if (m->backing == Backing::native_file) {
            auto made = co_await home_.file_copies.make_writable_in_use(*process, at);
            if (!made) home_.failures.lost_track(fragment, made.error());
        }
        home_.acceptors.tell(pid, Protected{text, prot | PROT_WRITE});
        home_.acceptors.tell(pid, Protected{text, prot});
    }
}

void MemoryGate::inherit(const HomeThread& parent, HomeProcess& child, bool shares) {
    HomeProcess& parents = *parent.process;
    child.memory_limits = parents.memory_limits;
    child.ipc_at_birth = ipc_namespace_of(parent.tid);
    if (home_.policy.has_functions()) Functions::inherit_functions(parents, child);
    if (shares) return;
    FileCopies::inherit_copies(parents, child);
    home_.main_stack.inherit(parents, child);
    const AddressSpace& space = parents.fragment ? parents.fragment->space : parents.marked;
    // Attributes that its /proc/PID/maps does not show.
    for (const auto& [begin, m] : space.all()) {
        if (m.sealed || m.wiped_on_fork) child.marked.map(m);
    }
}

void MemoryGate::applied(pid_t pid, NodeId from, uint32_t mark) {
    if (mark & relayed_bit) {
        auto relayed = relayed_.find(mark);
        if (relayed == relayed_.end() || --relayed->second.missing > 0) return;
        const RelayedMark done = relayed->second;
        relayed_.erase(relayed);
        tell_applied(home_.acceptors.at(done.of).link, pid, done.mark);
        return;
    }
    HomeProcess* process = home_.find_process(pid);
    if (process && from <= process->changes.size()) process->changes[from - 1u]->applied(mark);
}

void MemoryGate::answer_mark(pid_t pid, NodeId from, uint32_t mark) {
    if (!home_.acceptors.are_several()) {
        tell_applied(home_.acceptors.at(from).link, pid, mark);
        return;
    }
    const uint32_t number = relayed_bit | (++relays_ & ~relayed_bit);
    relayed_[number] = {from, mark, home_.acceptors.size() - 1u};
    home_.acceptors.each([&](RemoteNode& node) { tell_mark(node.link, pid, number); }, from);
}

}  // namespace gpr::home
