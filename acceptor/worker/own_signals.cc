#include "acceptor/worker/own_signals.h"

#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "acceptor/worker/signals.h"
#include "acceptor/worker/worker.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/signal_action.h"
#include "syscall/table.h"

namespace gpr::worker {

namespace {

constexpr uint64_t bit_of(int signal) { return 1ULL << (signal - 1); }

// After these the kernel may name another user as the sender.
constexpr std::array<uint32_t, 5> changes_of_user{SYS_setuid, SYS_setreuid, SYS_setresuid,
                                                  SYS_unshare, SYS_setns};

// nullopt unless the call names one thread to send a signal to, in the caller's own terms.
std::optional<OwnSignal> named_by(const Notification& n) {
    const SentPlaces places = details_of(n.number).sends;
    const bool by_thread = n.number == SYS_tgkill || n.number == SYS_tkill;
    if (!by_thread) return std::nullopt;
    OwnSignal named;
    named.call = n.number;
    named.signal = static_cast<int>(n.args[places.signal]);
    if (places.process >= 0) named.process = static_cast<pid_t>(n.args[places.process]);
    named.thread = static_cast<pid_t>(n.args[places.thread]);
    return named;
}

}  // namespace

bool OwnSignals::make(RemoteProcess& process, RemoteThread& thread, const Notification& n) {
    if (std::ranges::find(changes_of_user, n.number) != changes_of_user.end()) {
        thread.own_signal = {};
    }
    auto named = named_by(n);
    if (!named || named->signal < 1 || named->signal >= NSIG) return false;
    OwnSignal& known = thread.own_signal;
    const bool same = known.info && known.call == named->call && known.process == named->process &&
                      known.thread == named->thread;
    if (!same) {  // perhaps to itself: note_passed() will show
        known = *named;
        return false;
    }
    if (!is_handled_at_once(process, thread, named->signal)) return false;
    siginfo_t info = *known.info;
    info.si_signo = named->signal;
    worker_.counts.native++;
    Signals::deliver(thread, {info, 0, true});
    process.notifier->reply_raw(n.id, 0);
    return true;
}

void OwnSignals::note_action(RemoteProcess& process, const SignalAction& action) {
    if (action.signal < 1 || action.signal >= NSIG) return;
    const bool lasts = action.catches() && !(action.kernel[1] & SA_RESETHAND);
    process.lasting_handlers &= ~bit_of(action.signal);
    if (lasts) process.lasting_handlers |= bit_of(action.signal);
}

// The sender is this thread if it is the process and has named the thread that gets the signal.
void OwnSignals::note_passed(RemoteThread& thread, const HandledSignal& signal) {
    OwnSignal& asked = thread.own_signal;
    const siginfo_t& info = signal.info;
    const bool is_it = !asked.info && asked.call != 0 && info.si_code == SI_TKILL &&
                       info.si_signo == asked.signal && info.si_pid == asked.process &&
                       asked.thread == thread.tid;
    if (is_it) asked.info = info;
}

// Nothing that home or a supervisor has under way may come between the call and the handler.
bool OwnSignals::is_handled_at_once(const RemoteProcess& process, const RemoteThread& thread,
                                    int signal) {
    if (thread.passed || thread.answer_signal || thread.borrowed || thread.borrowed_for ||
        process.debugged || process.stops()) {
        return false;
    }
    const bool lasts = process.lasting_handlers & bit_of(signal);
    if (!lasts || !thread.mask || (*thread.mask & bit_of(signal))) return false;
    return trace::signal_set(thread.host_tid, "SigCgt:") & bit_of(signal);
}

}  // namespace gpr::worker
