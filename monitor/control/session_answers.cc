#include "monitor/control/session_answers.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "monitor/control/moved_pages.h"
#include "monitor/control/page_cells.h"
#include "monitor/home/crossings.h"
#include "monitor/home/home.h"
#include "monitor/home/observations.h"
#include "monitor/home/statistics.h"
#include "monitor/home/stats_report.h"
#include "monitor/paging/resident.h"
#include "monitor/tracee/reserved_range.h"
#include "monitor/tracee/thread_status.h"
#include "syscall/table.h"

namespace gpr {

namespace {

using nlohmann::json;

constexpr int json_version = 1;
constexpr size_t most_moved_pages = 256;
constexpr size_t most_crossing_places = 64;
constexpr uint64_t most_cells_of_mapping = 256;
constexpr uint64_t most_memory_bytes = 64 << 10;
// The kernel needs some 20 us for each.
constexpr size_t most_threads_at_once = 32;
constexpr size_t most_mappings_at_once = 256;

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
std::string waits_for(const ThreadStatus& status, bool for_page) {
    if (for_page || status.waits_in.starts_with("handle_userfault")) return "a page";
    if (status.letter == 'R') return "";
    if (status.letter == 'T') return "SIGCONT";
    const std::string call = call_name(status.call);
    if (begins_with_any(status.waits_in, {"seccomp_", "__seccomp_"})) {
        return call.empty() || call == "unknown" ? "gpr" : "gpr, for " + call;
    }
    if (call.empty()) return status.waits_in;
    return status.waits_in.empty() ? call : fmt::format("{} ({})", call, status.waits_in);
}

std::string text_of_protection(int prot, bool shared) {
    return {prot & PROT_READ ? 'r' : '-', prot & PROT_WRITE ? 'w' : '-',
            prot & PROT_EXEC ? 'x' : '-', shared ? 's' : 'p'};
}

json registers_of(const std::optional<Standing>& full, const ThreadStatus& status) {
    if (!full) return {{"rip", status.instruction}, {"rsp", status.stack_pointer}};
    const user_regs_struct& r = full->registers;
    return {{"rip", r.rip}, {"rsp", r.rsp}, {"rbp", r.rbp}, {"rax", r.rax}, {"rbx", r.rbx},
            {"rcx", r.rcx}, {"rdx", r.rdx}, {"rsi", r.rsi}, {"rdi", r.rdi}, {"r8", r.r8},
            {"r9", r.r9},   {"r10", r.r10}, {"r11", r.r11}, {"r12", r.r12}, {"r13", r.r13},
            {"r14", r.r14}, {"r15", r.r15}};
}

void append_digits(std::string& text, std::span<const std::byte> bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    for (const std::byte each : bytes) {
        const auto value = static_cast<size_t>(each);
        text += {digits[value >> 4], digits[value & 15]};
    }
}

json ended(pid_t pid) { return {{"error", fmt::format("process {} has ended", pid)}}; }

// Names of mappings of home, by where they begin.
std::map<Address, MapsEntry> kernels_maps(pid_t pid) {
    std::map<Address, MapsEntry> by_begin;
    auto maps = read_maps(pid);
    for (MapsEntry& each : maps ? *maps : std::vector<MapsEntry>{}) {
        by_begin.emplace(each.range.begin, std::move(each));
    }
    return by_begin;
}

std::string name_at(const std::map<Address, MapsEntry>& maps, Address at) {
    auto found = maps.upper_bound(at);
    if (found == maps.begin()) return "";
    const MapsEntry& entry = std::prev(found)->second;
    return at < entry.range.end ? entry.name : "";
}

}  // namespace

SessionAnswers::SessionAnswers(home::Home& home, SessionFacts facts)
    : home_(home), facts_(std::move(facts)), since_(time(nullptr)) {}

std::string SessionAnswers::name_of(unsigned node) const {
    return node == directory_node ? "home" : home_.options.acceptors.at(node - 1).name;
}

Usage SessionAnswers::used_at_home() const {
    Usage used = home_.stats.home_cpu;
    for (const auto& [pid, process] : home_.processes) {
        if (!process->finished) used += usage_of_process(pid);
    }
    return used;
}

Task<json> SessionAnswers::session() {
    home::Observations::Question question;
    const std::vector<Observed> seen = co_await home_.observations.ask(std::move(question));
    json acceptors = json::array(), processes = json::array();
    uint64_t cpu_away = 0;
    home_.acceptors.each([&](const home::RemoteNode& node) {
        const AcceptorAddress& acceptor = home_.options.acceptors.at(node.id - 1u);
        cpu_away += node.counts.cpu.total_ns + seen.at(node.id - 1u).used.total_ns;
        acceptors.push_back({{"name", acceptor.name},
                             {"address", acceptor.address},
                             {"threads", 0},
                             {"bytes_in", node.link_stats().bytes_in},
                             {"bytes_out", node.link_stats().bytes_out}});
    });
    uint64_t here = 0, away = 0;
    for (const auto& [tid, thread] : home_.threads) {
        if (thread->helper || thread->ends()) continue;
        (thread->remote() ? away : here)++;
        if (!thread->remote()) continue;
        json& threads = acceptors.at(thread->node - 1u)["threads"];
        threads = threads.get<uint64_t>() + 1;
    }
    for (const auto& [pid, process] : home_.processes) {
        if (process->is_root) root_ = pid;
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
                   {"cpu_home_s", seconds(used_at_home().total_ns)},
                   {"cpu_away_s", seconds(cpu_away)},
                   {"bytes_moved", moved.bytes_in + moved.bytes_out},
                   {"devices", facts_.devices}};
}

Task<json> SessionAnswers::statistics() {
    home::Observations::Question question;
    const std::vector<Observed> seen = co_await home_.observations.ask(std::move(question));
    StatsReport report = home_.statistics.report();
    report.home_cpu = used_at_home();
    for (size_t i = 0; i < seen.size(); i++) report.acceptors.at(i).cpu += seen[i].used;
    json answer = json::parse(report.json());
    answer["session"] = root_;
    answer["words"] = report.words();
    co_return answer;
}

// away: the acceptor's observation of the thread; null if it is at home, makes a call here, or the
// acceptor, which observes a limited number of threads, has left it out.
json SessionAnswers::thread(const HomeThread& thread, const ObservedThread* away) const {
    const ThreadStatus here = status_of_thread(thread.tid);
    const paging::ThreadTraffic traffic = home_.pager.traffic.of_thread(thread.tid);
    const bool in_call_here = thread.remote() && thread.is_in(HomeThread::Business::call);
    const bool shows_away = thread.remote() && !in_call_here && away;
    const ThreadStatus& status = shows_away ? away->status : here;
    const bool for_page = shows_away ? away->waits_for_page : home_.pager.faults.waits(thread.tid);
    const bool is_told = away || !thread.remote() || in_call_here;
    std::string waits = is_told ? waits_for(status, for_page) : "";
    if (in_call_here && !waits.empty()) waits += ", at home";
    const uint64_t cpu_away = away ? away->status.cpu_ns : 0;
    return json{
        {"pid", thread.process->pid},
        {"tid", thread.tid},
        {"name", command_name(thread.tid)},
        {"node", thread.node},
        {"where", name_of(thread.node)},
        {"state", is_told ? state_name(status.letter) : "unknown"},
        {"waits_for", waits},
        {"cpu_s", {{"home", seconds(here.cpu_ns)}, {"away", seconds(cpu_away)}}},
        {"crossings", {{"out", thread.counts.departures}, {"back", thread.counts.arrivals}}},
        {"calls_home", thread.counts.calls},
        {"faults", {{"home", traffic.faults}, {"away", away ? away->faults : 0}}},
        {"pages_in", {{"home", traffic.pages}, {"away", away ? away->pages : 0}}}};
}

Task<json> SessionAnswers::threads(std::function<bool(pid_t pid)> may_read) {
    home::Observations::Question question;
    question.threads = true;
    const std::vector<Observed> seen = co_await home_.observations.ask(std::move(question));
    std::map<std::pair<pid_t, pid_t>, ObservedThread> away;
    for (const Observed& each : seen) {
        for (const ObservedThread& thread : each.threads) {
            ObservedThread& sum = away[{thread.pid, thread.tid}];
            const ObservedThread before = sum;
            if (thread.here || sum.tid == 0) sum = thread;
            if (before.tid == 0) continue;
            sum.faults = before.faults + thread.faults;
            sum.pages = before.pages + thread.pages;
            sum.status.cpu_ns = before.status.cpu_ns + thread.status.cpu_ns;
        }
    }
    std::map<pid_t, pid_t> in_order;
    for (const auto& [tid, each] : home_.threads) {
        if (!each->helper && !each->ends()) in_order[tid] = each->process->pid;
    }
    json list = json::array();
    size_t looked_at = 0;
    for (const auto& [tid, pid] : in_order) {
        if (++looked_at % most_threads_at_once == 0) {
            co_await home_.loop.sleep(std::chrono::nanoseconds(0));
        }
        const HomeThread* each = home_.find_thread(pid, tid);
        const auto found = away.find({pid, tid});
        if (!each) continue;
        list.push_back(thread(*each, found == away.end() ? nullptr : &found->second));
        if (!may_read(pid)) list.back()["waits_for"] = "";
    }
    co_return json{{"version", json_version}, {"session", root_}, {"threads", list}};
}

json SessionAnswers::range(const HomeProcess& process, const Mapping& m,
                           const std::string& name) const {
    const auto copy = process.copied_files.find(m.object);
    const bool is_copy = m.file && !m.shared && copy != process.copied_files.end();
    const bool remote_code = m.code == CodeClass::remote;
    const auto traffic = home_.pager.traffic.of_object(m.object);
    const char* code = m.code == CodeClass::neutral ? "any" : remote_code ? "away" : "home";
    return {
        {"begin", m.range.begin.value},
        {"end", m.range.end.value},
        {"protection", text_of_protection(m.prot, m.shared)},
        {"file", is_copy ? copy->second.path : name},
        {"offset", m.content_offset},
        {"owner", name_of(remote_code ? m.code_node : m.birth)},
        {"code", m.prot & PROT_EXEC ? code : ""},
        {"traffic", {{"pages_to_home", traffic.pages_in}, {"pages_from_home", traffic.pages_out}}}};
}

// Some mappings at a time: in between the process and its mappings may go.
Task<std::vector<json>> SessionAnswers::ranges_of(pid_t pid) {
    const std::map<Address, MapsEntry> maps = kernels_maps(pid);
    std::vector<json> list;
    if (!home_.find_process(pid)->fragment) {
        for (const auto& [begin, entry] : maps) {
            list.push_back({{"begin", begin.value},
                            {"end", entry.range.end.value},
                            {"protection", text_of_protection(entry.prot, entry.shared)},
                            {"file", entry.name},
                            {"offset", entry.offset},
                            {"owner", name_of(directory_node)},
                            {"code", "home"}});
        }
        co_return list;
    }
    for (Address next{0};;) {
        const HomeProcess* process = home_.find_process(pid);
        if (!process || !process->fragment) co_return list;
        const auto& all = process->fragment->space.all();
        size_t looked_at = 0;
        auto at = all.lower_bound(next);
        for (; at != all.end() && ++looked_at < most_mappings_at_once; ++at) {
            const Mapping& m = at->second;
            if (m.range.overlaps(reserved_range)) continue;
            list.push_back(range(*process, m, name_at(maps, m.range.begin)));
        }
        if (at == all.end()) co_return list;
        next = at->first;
        co_await home_.loop.sleep(std::chrono::nanoseconds(0));
    }
}

// Some mappings at a time: in between the process may go.
Task<void> SessionAnswers::add_resident(pid_t pid, std::vector<json>& mappings) {
    for (size_t first = 0; first < mappings.size(); first += most_observed_ranges) {
        const size_t end = std::min(first + most_observed_ranges, mappings.size());
        home::Observations::Question question;
        question.pid = pid;
        for (size_t i = first; i < end; i++) {
            question.ranges.push_back(
                {{mappings[i]["begin"].get<uint64_t>()}, {mappings[i]["end"].get<uint64_t>()}});
        }
        const std::vector<Range> ranges = question.ranges;
        const std::vector<Observed> seen = co_await home_.observations.ask(std::move(question));
        for (size_t i = first; i < end; i++) {
            HomeProcess* process = home_.find_process(pid);
            if (!process || !process->fragment) co_return;
            json resident = json::object();
            const uint64_t here =
                co_await paging::resident_pages(home_.loop, process->fragment, ranges[i - first]);
            resident["home"] = here;
            for (size_t node = 0; node < seen.size(); node++) {
                if (!seen[node].answered) continue;
                const auto& pages = seen[node].resident;
                resident[name_of(static_cast<unsigned>(node + 1))] =
                    i - first < pages.size() ? pages[i - first] : 0;
            }
            mappings[i]["resident"] = std::move(resident);
        }
    }
}

Task<json> SessionAnswers::registers(pid_t pid) {
    home::Observations::Question question;
    question.pid = pid;
    question.threads = question.registers = true;
    const std::vector<Observed> seen = co_await home_.observations.ask(std::move(question));
    std::vector<pid_t> tids;
    if (const HomeProcess* process = home_.find_process(pid)) {
        for (const auto& [tid, each] : process->threads) {
            if (!each->helper && !each->ends()) tids.push_back(tid);
        }
    }
    json list = json::array();
    size_t told = 0;
    for (const pid_t tid : tids) {
        std::optional<Standing> full;
        if (told < most_standings) full = co_await home_.observations.where_stands(pid, tid);
        if (full && ++told > most_observed_stacks) full->stack.clear();
        const HomeThread* each = home_.find_thread(pid, tid);
        if (!each) continue;
        ThreadStatus status = status_of_thread(tid);
        if (each->remote()) {
            const auto& there = seen.at(each->node - 1u).threads;
            const auto found = std::ranges::find(there, tid, &ObservedThread::tid);
            if (found == there.end()) continue;
            status = found->status;
            full = found->standing;
        }
        std::string stack;
        if (full) append_digits(stack, full->stack);
        list.push_back({{"tid", tid}, {"registers", registers_of(full, status)}, {"stack", stack}});
    }
    co_return json{{"version", json_version}, {"pid", pid}, {"threads", list}};
}

// Reads page by page, to return what is before the first page that is not mapped.
Task<json> SessionAnswers::memory(pid_t pid, uint64_t address, uint64_t bytes) {
    std::string digits;
    bytes = std::min(bytes, most_memory_bytes);
    while (bytes > 0) {
        HomeProcess* process = home_.find_process(pid);
        if (!process) break;
        const std::shared_ptr<Fragment> fragment = process->fragment;
        std::vector<std::byte> part(std::min(bytes, page_size - address % page_size));
        bool good = false;
        if (fragment) {
            good = co_await home_.pager.memory.read(*fragment, {address}, part);
        } else if (auto own = RemoteMemory::open(pid)) {
            good = own->read_exact({address}, part.data(), part.size());
        }
        if (!good) break;
        append_digits(digits, part);
        address += part.size();
        bytes -= part.size();
    }
    co_return json{{"version", json_version}, {"pid", pid}, {"bytes", digits}};
}

Task<json> SessionAnswers::pages(pid_t pid) {
    if (!home_.find_process(pid)) co_return ended(pid);
    const std::vector<MovedPage> moved = co_await moved_pages(home_, pid, most_moved_pages);
    json list = json::array();
    for (const MovedPage& page : moved) {
        json nodes = json::array();
        for (unsigned node = 0; node <= home_.options.acceptors.size(); node++) {
            if (page.nodes >> node & 1) nodes.push_back(name_of(node));
        }
        list.push_back({{"address", page.at.value},
                        {"moves", page.moves},
                        {"nodes", nodes},
                        {"exclusive", page.exclusive}});
    }
    co_return json{{"version", json_version}, {"session", root_}, {"pid", pid}, {"pages", list}};
}

Task<json> SessionAnswers::crossings(pid_t pid) {
    if (!home_.find_process(pid)) co_return ended(pid);
    json list = json::array();
    for (const auto& [place, times] : home_.crossings.places_of(pid, most_crossing_places)) {
        list.push_back({{"node", name_of(place.node)},
                        {"there", place.there.value},
                        {"here", place.here.value},
                        {"times", times}});
    }
    co_return json{
        {"version", json_version}, {"session", root_}, {"pid", pid}, {"crossings", list}};
}

// Each as {"count": N, "moved": [[CELL, MOVES, SHARED, ONLY AT HOME, ONLY AT NODE 1, ...], ...]}.
Task<void> SessionAnswers::add_cells(pid_t pid, uint64_t most, std::vector<json>& mappings) {
    most = std::min(most, most_cells_of_mapping);
    const PageCells all = co_await page_cells(home_, pid, most);
    for (json& mapping : mappings) {
        const Address begin{mapping["begin"].get<uint64_t>()};
        const uint64_t pages = (mapping["end"].get<uint64_t>() - begin.value) / page_size;
        json moved = json::array();
        const auto found = all.find(begin);
        for (const auto& [number, cell] :
             found == all.end() ? PageCells::mapped_type() : found->second) {
            json row{number, cell.moves, cell.shared};
            for (const uint64_t only : cell.only) row.push_back(only);
            moved.push_back(std::move(row));
        }
        mapping["cells"] = {{"count", cell_count(pages, most)}, {"moved", std::move(moved)}};
    }
}

Task<json> SessionAnswers::mappings(pid_t pid, bool with_resident, uint64_t most_cells) {
    if (!home_.find_process(pid)) co_return ended(pid);
    const std::string name = command_name(pid);
    std::vector<json> list = co_await ranges_of(pid);
    if (with_resident) co_await add_resident(pid, list);
    if (most_cells > 0) co_await add_cells(pid, most_cells, list);
    co_return json{{"version", json_version}, {"session", root_}, {"pid", pid}, {"name", name},
                   {"page_size", page_size},  {"mappings", list}};
}

}  // namespace gpr
