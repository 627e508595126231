#include "monitor/tracee/ptrace.h"

#include <fstream>
#include <unordered_map>
#include <unordered_set>

#include "monitor/tracee/resume_request.h"
#include "monitor/tracee/resumed_wait.h"

namespace gpr::trace {

namespace {
// Missing from the C library's header.
constexpr int get_signal_mask_request = 0x420a, set_signal_mask_request = 0x420b;

template <class Value>
Result<Value> fetch(__ptrace_request request, pid_t tid, const char* what) {
    Value value{};
    if (::ptrace(request, tid, nullptr, &value) != 0) return fail(errno, what);
    return value;
}

// A monitor traces from one thread.
std::unordered_map<pid_t, int>& requests() {
    static std::unordered_map<pid_t, int> by_tid;
    return by_tid;
}

std::unordered_set<pid_t>& interrupted() {
    static std::unordered_set<pid_t> tids;
    return tids;
}

std::unordered_set<pid_t>& to_be_detached() {
    static std::unordered_set<pid_t> tids;
    return tids;
}

std::unordered_set<pid_t>& ends_reported() {
    static std::unordered_set<pid_t> tids;
    return tids;
}

// SIGKILL takes a thread out of any stop, and to the one at its end. Who is about to answer the
// stop before must not answer this one, which nobody has seen yet.
bool is_at_unseen_end(pid_t tid) {
    if (ends_reported().contains(tid)) return false;
    siginfo_t info{};
    return ::ptrace(PTRACE_GETSIGINFO, tid, nullptr, &info) == 0 && info.si_signo == SIGTRAP &&
           info.si_code == (SIGTRAP | PTRACE_EVENT_EXIT << 8);
}

void go_on(pid_t tid, int request, int signal) {
    if (is_at_unseen_end(tid)) return;
    ::ptrace(static_cast<__ptrace_request>(request), tid, nullptr, static_cast<long>(signal));
}
}  // namespace

void detach(pid_t tid) {
    make_wait_again(tid);
    if (::ptrace(PTRACE_DETACH, tid, nullptr, 0L) != 0 && errno == ESRCH) {
        to_be_detached().insert(tid);
    }
}

bool detach_late(pid_t tid, bool ended, int signal) {
    if (to_be_detached().erase(tid) == 0) return false;
    if (ended) return true;
    make_wait_again(tid);
    ::ptrace(PTRACE_DETACH, tid, nullptr, static_cast<long>(signal));
    return true;
}

void go_on_by(pid_t tid, int request) {
    if (request == PTRACE_CONT) {
        requests().erase(tid);
    } else {
        requests()[tid] = request;
    }
}

int goes_on_by(pid_t tid) {
    auto it = requests().find(tid);
    return it == requests().end() ? PTRACE_CONT : it->second;
}

Result<void> seize(pid_t tid, long options) {
    if (::ptrace(PTRACE_SEIZE, tid, nullptr, options) != 0) {
        return fail(errno, fmt::format("cannot trace process {}", tid));
    }
    return {};
}

Result<user_regs_struct> registers(pid_t tid) {
    return fetch<user_regs_struct>(PTRACE_GETREGS, tid, "cannot read registers");
}

Result<void> set_registers(pid_t tid, user_regs_struct regs) {
    if (::ptrace(PTRACE_SETREGS, tid, nullptr, &regs) != 0)
        return fail(errno, "cannot set registers");
    return {};
}

Result<siginfo_t> signal_info(pid_t tid) {
    return fetch<siginfo_t>(PTRACE_GETSIGINFO, tid, "cannot read a signal");
}

Result<void> set_signal_info(pid_t tid, siginfo_t info) {
    if (::ptrace(PTRACE_SETSIGINFO, tid, nullptr, &info) != 0)
        return fail(errno, "cannot set a signal");
    return {};
}

Result<unsigned long> event_message(pid_t tid) {
    if (is_at_unseen_end(tid)) return fail(ESRCH, "the thread has been killed");
    return fetch<unsigned long>(PTRACE_GETEVENTMSG, tid, "cannot read an event");
}

void set_options(pid_t tid, long options) { ::ptrace(PTRACE_SETOPTIONS, tid, nullptr, options); }

void resume(pid_t tid, int signal) { go_on(tid, goes_on_by(tid), signal); }
void resume_past_calls(pid_t tid) { go_on(tid, PTRACE_CONT, 0); }
void single_step(pid_t tid, int signal) { go_on(tid, PTRACE_SINGLESTEP, signal); }
void resume_to_call(pid_t tid, int signal) { go_on(tid, PTRACE_SYSCALL, signal); }
void interrupt(pid_t tid) {
    interrupted().insert(tid);
    ::ptrace(PTRACE_INTERRUPT, tid, nullptr, 0L);
}
bool is_stop_wanted(pid_t tid) { return interrupted().contains(tid); }
void note_interrupted(pid_t tid) { interrupted().erase(tid); }
void note_end_reported(pid_t tid) { ends_reported().insert(tid); }
void note_ended(pid_t tid) { ends_reported().erase(tid); }
void stay_stopped(pid_t tid) { ::ptrace(PTRACE_LISTEN, tid, nullptr, 0L); }

uint64_t signal_mask(pid_t tid) {
    uint64_t mask = 0;
    ::ptrace(static_cast<__ptrace_request>(get_signal_mask_request), tid, sizeof mask, &mask);
    return mask;
}

void set_signal_mask(pid_t tid, uint64_t mask) {
    ::ptrace(static_cast<__ptrace_request>(set_signal_mask_request), tid, sizeof mask, &mask);
}

uint64_t pending_signals(pid_t tid) {
    return signal_set(tid, "SigPnd:") | signal_set(tid, "ShdPnd:");
}

uint64_t signal_set(pid_t pid, std::string_view name) {
    std::ifstream in(fmt::format("/proc/{}/status", pid));
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with(name)) return std::stoull(line.substr(name.size()), nullptr, 16);
    }
    return 0;
}

void take_call_back(user_regs_struct& regs) {
    regs.rip -= 2;
    regs.rax = regs.orig_rax;
    regs.orig_rax = ~0UL;
}

void take_call_back(pid_t tid, user_regs_struct& regs) {
    take_call_back(regs);
    set_registers(tid, regs);
}

void rewind_interrupted_call(user_regs_struct& regs) {
    bool in_call = static_cast<long>(regs.orig_rax) >= 0;
    bool waited = is_interrupted_wait(regs);  // only we have interrupted the wait
    return_from_call(regs, regs.orig_rax,
                     in_call && waited ? -restart_nointr : static_cast<long>(regs.rax));
}

void return_from_call(user_regs_struct& regs, uint64_t number, long result) {
    regs.rax = static_cast<uint64_t>(result);
    if (static_cast<long>(number) >= 0 && is_restart(result)) {
        regs.rax = number;
        regs.rip -= 2;
    }
    regs.orig_rax = ~0UL;
}

}  // namespace gpr::trace
