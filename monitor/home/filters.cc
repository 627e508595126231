#include "monitor/home/filters.h"

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "monitor/home/calls.h"
#include "monitor/home/detachment.h"
#include "monitor/home/home.h"
#include "monitor/home/homecoming.h"
#include "monitor/home/last_words.h"
#include "monitor/home/signals.h"
#include "monitor/home/taken_calls.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/remote_memory_raw.h"

namespace gpr::home {

namespace {
bool begins_with(const FilterList& filters, const FilterList& first) {
    return first.size() <= filters.size() &&
           std::equal(first.begin(), first.end(), filters.begin());
}
}  // namespace

// The thread makes the call in its stub.
Task<int64_t> Filters::install(HomeThread& thread, uint64_t number, std::array<uint64_t, 6> args,
                               FilterCall call) {
    StubThread& stub = *thread.stub;
    if (!call.filter) {
        co_return co_await stub.call(number, args[0], args[1], args[2], args[3], args[4], args[5]);
    }
    // Strict mode needs no privilege, so our imitation must not need one either.
    if (call.strict) co_await stub.call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1);
    int64_t result = co_await install_filter(stub, *call.filter, call.all_threads);
    if (result != 0) {
        co_return result > 0 && call.tells_no_thread ? -ESRCH : result;
    }
    note_installed(thread, call);
    co_return 0;
}

void Filters::note_installed(HomeThread& thread, const FilterCall& call) {
    thread.filters.push_back(call.filter);
    if (!call.all_threads) return;
    for (auto& [tid, other] : thread.process->threads) {
        if (!other->helper) other->filters = thread.filters;
    }
}

bool Filters::has_any(const HomeProcess& process) {
    return std::ranges::any_of(process.threads, [](const auto& entry) {
        return !entry.second->helper && !entry.second->filters.empty();
    });
}

bool Filters::are_common(const HomeProcess& process) {
    const FilterList* first = nullptr;
    for (const auto& [tid, thread] : process.threads) {
        if (thread->helper) continue;
        if (first && *first != thread->filters) return false;
        first = &thread->filters;
    }
    return true;
}

// Strict mode takes neither flags nor an address. What is mapped, but cannot be read, is at an
// acceptor, and the kernel waits for it.
bool Filters::is_probe(const HomeProcess& process, const Notification& n) {
    if (!installs_filter(n.number, n.args)) return false;
    if (n.number == SYS_seccomp && static_cast<uint32_t>(n.args[0]) == SECCOMP_SET_MODE_STRICT) {
        return n.args[1] != 0 || n.args[2] != 0;
    }
    if (n.number == SYS_prctl && n.args[1] == SECCOMP_MODE_STRICT) return false;
    std::array<std::byte, sizeof(sock_fprog)> program{};
    const auto memory = RemoteMemory::open(process.pid);
    if (!memory || memory->read_exact({n.args[2]}, program.data(), program.size())) return false;
    const auto maps = read_maps(process.pid);
    return maps && std::ranges::none_of(*maps, [&](const MapsEntry& entry) {
               return entry.range.contains({n.args[2]});
           });
}

void Filters::note_native_call(HomeThread& thread, const Notification& n) {
    const HomeProcess& process = *thread.process;
    if (process.rest && process.rest->settles) return;  // the call is gpr's
    if (!installs_filter(n.number, n.args) || is_probe(process, n)) return;
    thread.filtered_apart = true;
    if (n.number != SYS_seccomp || !(n.args[1] & SECCOMP_FILTER_FLAG_TSYNC)) return;
    for (const auto& [tid, other] : process.threads) {
        if (!other->helper) other->filtered_apart = true;
    }
}

// Waits for threads that are already ending: to a thread that has joined them they are gone, and
// the kernel ignores them when it installs a filter for all. The main thread lasts as long as the
// process.
Task<void> Filters::await_ends(pid_t pid) {
    auto is_ending = [pid](const auto& entry) {
        const HomeThread& thread = *entry.second;
        return thread.life() != HomeThread::Life::runs && !thread.helper && thread.tid != pid;
    };
    for (;;) {
        HomeProcess* process = home_.find_process(pid);
        if (!process) co_return;
        const auto& all = process->threads;
        if (std::none_of(all.begin(), all.end(), is_ending)) co_return;
        co_await home_.remote_changed.wait();
    }
}

// A thread because of which a filter cannot be installed for all threads: an acceptor has more
// filters of it than the common ones. If this is only the caller, which the kernel would not mind,
// a thread that the kernel would name comes first.
std::optional<pid_t> Filters::in_the_way(const HomeThread& caller, bool takes_its_own_along) {
    const HomeProcess& process = *caller.process;
    auto has_more = [&](const Twin& twin) { return twin.filters > process.common_filters; };
    for (const auto& [tid, other] : process.threads) {
        if (other != &caller && std::ranges::any_of(other->twins, has_more)) return tid;
    }
    if (takes_its_own_along || std::ranges::none_of(caller.twins, has_more)) return std::nullopt;
    for (const auto& [tid, other] : process.threads) {
        bool counts = other != &caller && !other->helper && !other->ends();
        if (counts && !begins_with(caller.filters, other->filters)) return tid;
    }
    return caller.tid;
}

// For a thread at an acceptor, which installs the filter there once it is installed here.
Task<void> Filters::install_for(HomeProcess& process, HomeThread& thread, uint64_t number,
                                std::array<uint64_t, 6> args) {
    pid_t pid = process.pid, tid = thread.tid;
    std::shared_ptr<StubThread> stub = thread.stub;
    if (home_.call_stops) {
        co_await release_for_filters(process, thread);
        co_return;
    }
    auto call = co_await read_filter_call(home_.pager, process.fragment, number, args);
    if (call.all_threads) {
        co_await await_ends(pid);
        if (home_.find_thread(pid, tid) != &thread || stub->dead()) co_return;
        // If all threads are there, they get the caller's other filters along with this one.
        if (auto other = in_the_way(thread, !home_.policy.mixed())) {
            home_.calls.reply(thread, call.refusal(*other));
            co_return;
        }
    }
    int64_t result = co_await install(thread, number, args, call);
    if (stub->dead()) co_return;
    if (result == 0 && call.filter) {
        thread.twin(thread.node).filters = thread.filters.size();
        if (call.all_threads) {
            tell_common_filters(thread, thread.node);
            note_common_filters(thread);
        }
    }
    home_.calls.reply(thread, result);
}

// Filters would judge the calls that stops change. The thread calls again where it goes on.
Task<void> Filters::release_for_filters(HomeProcess& process, HomeThread& thread) {
    std::shared_ptr<StubThread> stub = thread.stub;
    if (!process.comes_home) {
        auto possible = home_.homecoming.can_leave(process);
        if (!possible) {
            home_.calls.reply(thread, -EINVAL);
            co_return;
        }
        home_.calls.reply(thread, -trace::restart_nointr);
        co_await home_.detachment.release(process);
        co_return;
    }
    home_.calls.reply(thread, -trace::restart_nointr);
}

// For program code at home.
Task<void> Filters::filter_call(HomeProcess& process, HomeThread& thread, Notification n) {
    std::array<uint64_t, 6> args;
    std::copy(n.args, n.args + 6, args.begin());
    pid_t pid = process.pid;
    if (home_.call_stops) {
        const bool released = co_await home_.detachment.release(process);
        if (!released) home_.notifier->reply_error(n.id, EINVAL);
        co_return;
    }
    auto call = co_await read_filter_call(home_.pager, process.fragment, n.number, args);
    if (call.all_threads) co_await await_ends(pid);
    if (!home_.notifier->still_valid(n.id)) co_return;
    if (call.all_threads) {
        // To the kernel there, equal filters are different if each thread got its own.
        if (auto other = in_the_way(thread, false)) {
            home_.notifier->reply(n.id, call.refusal(*other));
            co_return;
        }
    }
    auto taken = co_await home_.taken_calls.take_call(thread);
    if (!taken) co_return;
    int64_t result = co_await install(thread, n.number, args, call);
    if (taken->stub->dead()) co_return;
    if (result == 0 && call.all_threads) {
        tell_common_filters(thread);
        note_common_filters(thread);
    }
    co_await home_.taken_calls.return_from(thread, std::move(*taken), result);
}

void Filters::tell_common_filters(const HomeThread& thread, NodeId from) {
    HomeProcess& process = *thread.process;
    if (!process.started_remotely) return;
    auto news = std::span(thread.filters).subspan(process.common_filters);
    FrameBuilder frame;
    auto change = frame.session().initFilters();
    change.setPid(process.pid);
    filters_to_wire(news, change.initFilters(static_cast<unsigned>(news.size())));
    home_.acceptors.send(frame, from);
}

// All threads now have the same filters, at the acceptors, too.
void Filters::note_common_filters(const HomeThread& thread) {
    HomeProcess& process = *thread.process;
    process.common_filters = thread.filters.size();
    for (auto& [tid, other] : process.threads) {
        for (Twin& twin : other->twins) twin.filters = process.common_filters;
    }
}

int64_t Filters::seccomp_mode(const HomeThread& thread) {
    return count(thread) == 0 ? SECCOMP_MODE_DISABLED : SECCOMP_MODE_FILTER;
}

size_t Filters::count(const HomeThread& thread) {
    return thread.filters.size() + (thread.filtered_apart ? 1 : 0);
}

void Filters::inherit_filters(const HomeThread& parent, HomeThread& child) {
    child.filters = parent.filters;
    child.filtered_apart = parent.filtered_apart;
    if (child.process != parent.process) return;
    for (Twin& twin : child.twins) twin.filters = child.process->common_filters;
    // A new thread inherits its parent's filters at the acceptor where it is born.
    if (parent.remote()) child.twin(parent.node).filters = parent.filters.size();
}

// After exec one thread is left, with the process's id. If another thread called exec, it took over
// that id, so the state has to be that thread's.
void Filters::take_state_of_caller(HomeProcess& process, HomeThread& thread) {
    auto former = trace::event_message(thread.tid);
    if (!former) return;
    HomeThread* caller = home_.find_thread(process.pid, static_cast<pid_t>(*former));
    if (!caller || caller == &thread) return;
    thread.filters = caller->filters;
    thread.filtered_apart = caller->filtered_apart;
    thread.affinity = caller->affinity;
    thread.memory_policy = caller->memory_policy;
    thread.cpu_modes = caller->cpu_modes;
}

// Whether the thread was killed by SECCOMP_RET_KILL_THREAD here: it is ending, and others are not
// being killed with it.
bool Filters::is_ended_by_filter(const HomeThread& thread, int signal) {
    constexpr uint64_t sigkill = 1ULL << (SIGKILL - 1);
    if (signal != SIGSYS || thread.filters.empty()) return false;
    for (const auto& [tid, other] : thread.process->threads) {
        if (other == &thread || other->helper || other->ends()) continue;
        if (!(trace::signal_set(tid, "SigPnd:") & sigkill)) return true;
    }
    return false;
}

// A filter at the acceptor has killed the thread there.
Task<void> Filters::die_by_filter(HomeThread& thread, FilterDeath death) {
    if (death == FilterDeath::by_strict_mode) {
        kill(thread.process->pid, SIGKILL);
        co_return;
    }
    auto goes_on = [&](const auto& entry) {
        const HomeThread& other = *entry.second;
        return &other != &thread && !other.helper && !other.ends();
    };
    const auto& all = thread.process->threads;
    bool alone = std::none_of(all.begin(), all.end(), goes_on);
    if (alone || death == FilterDeath::of_process) {
        co_await home_.signals.die_of(thread, SIGSYS);
        co_return;
    }
    home_.last_words.tell_exit(thread);
    co_await thread.stub->call(SYS_exit, SIGSYS);
}

}  // namespace gpr::home
