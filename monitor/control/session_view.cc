#include "monitor/control/session_view.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "monitor/home/home.h"
#include "monitor/home/remote_usage.h"
#include "monitor/tracee/thread_view.h"
#include "syscall/table.h"

namespace gpr {

namespace {

using nlohmann::json;

constexpr int json_version = 1;

double seconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

std::string call_name(int32_t number) {
    if (number < 0) return "";
    const Row* row = find_row(static_cast<uint32_t>(number));
    return row ? row->name : fmt::format("system call {}", number);
}

std::string state_name(char letter) {
    switch (letter) {
        case 'R': return "running";
        case 'S': return "sleeping";
        case 'D': return "waiting for the kernel";
        case 'T': return "stopped";
        case 't': return "held by gpr";
        case 'Z':
        case 'X': return "ended";
        default: return "idle";
    }
}

bool begins_with_any(const std::string& text, std::initializer_list<std::string_view> beginnings) {
    return std::ranges::any_of(beginnings, [&](auto each) { return text.starts_with(each); });
}

// For people; empty if the thread waits for nothing.
std::string waits_for(const ThreadView& view, bool for_page) {
    if (for_page || view.waits_in.starts_with("handle_userfault")) return "a page";
    if (view.letter == 'R') return "";
    if (view.letter == 'T') return "SIGCONT";
    const std::string call = call_name(view.call);
    if (begins_with_any(view.waits_in, {"seccomp_", "__seccomp_"})) {
        return call.empty() || call == "unknown" ? "gpr" : "gpr, for " + call;
    }
    if (call.empty()) return view.waits_in;
    return view.waits_in.empty() ? call : fmt::format("{} ({})", call, view.waits_in);
}

}  // namespace

SessionView::SessionView(home::Home& home, SessionFacts facts)
    : home_(home), facts_(std::move(facts)), since_(time(nullptr)) {}

std::string SessionView::name_of(unsigned node) const {
    return node == directory_node ? "home" : home_.options.acceptors.at(node - 1).name;
}

std::vector<pid_t> SessionView::pids() const {
    std::vector<pid_t> all;
    for (const auto& [pid, process] : home_.processes) all.push_back(pid);
    return all;
}

Task<uint64_t> SessionView::used_away_ns() {
    uint64_t used = 0;
    for (const pid_t pid : pids()) {
        const HomeProcess* process = home_.find_process(pid);
        if (!process || !process->started_remotely) continue;
        const ToldUsage told = co_await home_.remote_usage.ask_usage(pid, pid, UsageCall{});
        used += told.used.total_ns;
    }
    home_.acceptors.each([&](const home::RemoteNode& node) { used += node.counts.cpu.total_ns; });
    co_return used;
}

Task<json> SessionView::session() {
    const uint64_t cpu_away = co_await used_away_ns();
    json acceptors = json::array(), processes = json::array();
    home_.acceptors.each([&](const home::RemoteNode& node) {
        const AcceptorAddress& acceptor = home_.options.acceptors.at(node.id - 1u);
        acceptors.push_back({{"name", acceptor.name},
                             {"address", acceptor.address},
                             {"threads", 0},
                             {"bytes_in", node.link.stats().bytes_in},
                             {"bytes_out", node.link.stats().bytes_out}});
    });
    uint64_t here = 0, away = 0;
    for (const auto& [tid, thread] : home_.threads) {
        if (thread->helper || thread->ends()) continue;
        (thread->remote() ? away : here)++;
        if (!thread->remote()) continue;
        json& threads = acceptors.at(thread->node - 1u)["threads"];
        threads = threads.get<uint64_t>() + 1;
    }
    Usage home_cpu = home_.stats.home_cpu;
    for (const auto& [pid, process] : home_.processes) {
        if (process->is_root) root_ = pid;
        if (!process->finished) home_cpu += usage_of_process(pid);
        processes.push_back({{"pid", pid},
                             {"name", command_name(pid)},
                             {"split", process->state == HomeProcess::State::split}});
    }
    const LinkStats moved = home_.acceptors.link_stats();
    co_return json{{"version", json_version},
                   {"session", root_},
                   {"monitor", getpid()},
                   {"user", geteuid()},
                   {"since", since_},
                   {"program", home_.options.program_path},
                   {"arguments", home_.options.args},
                   {"acceptors", acceptors},
                   {"processes", processes},
                   {"threads", {{"home", here}, {"away", away}}},
                   {"cpu_home_s", seconds(home_cpu.total_ns)},
                   {"cpu_away_s", seconds(cpu_away)},
                   {"bytes_moved", moved.bytes_in + moved.bytes_out},
                   {"devices", facts_.devices}};
}

// For a thread at an acceptor, the acceptor knows its state, unless it waits in a call made here.
Task<json> SessionView::thread(pid_t pid, pid_t tid) {
    UsageCall call;
    call.of = UsageCall::Of::thread;
    const ToldUsage told = co_await home_.remote_usage.ask_usage(pid, tid, call, true);
    const HomeThread* thread = home_.find_thread(pid, tid);
    if (!thread) co_return json();
    const ThreadView here = view_of_thread(tid);
    const bool in_call_here = thread->remote() && thread->is_in(HomeThread::Business::call);
    std::string waits = waits_for(here, false);
    char letter = here.letter;
    if (in_call_here && !waits.empty()) {
        waits += ", at home";
    } else if (thread->remote() && !in_call_here && told.state) {
        ThreadView there;
        letter = there.letter = told.state->letter;
        if (told.state->waits_in != "0") there.waits_in = told.state->waits_in;
        waits = waits_for(there, false);
    }
    co_return json{
        {"pid", pid},
        {"tid", tid},
        {"name", command_name(tid)},
        {"node", thread->node},
        {"where", name_of(thread->node)},
        {"state", state_name(letter)},
        {"waits_for", waits},
        {"cpu_s", {{"home", seconds(here.cpu_ns)}, {"away", seconds(told.used.total_ns)}}}};
}

Task<json> SessionView::threads() {
    std::map<pid_t, pid_t> in_order;
    for (const auto& [tid, each] : home_.threads) {
        if (!each->helper && !each->ends()) in_order[tid] = each->process->pid;
    }
    json list = json::array();
    for (const auto& [tid, pid] : in_order) {
        json one = co_await thread(pid, tid);
        if (!one.is_null()) list.push_back(std::move(one));
    }
    co_return json{{"version", json_version}, {"session", root_}, {"threads", list}};
}

}  // namespace gpr
