#include "monitor/control/session_metrics.h"

#include <poll.h>

#include "base/metrics_text.h"
#include "monitor/home/home.h"
#include "monitor/home/observations.h"
#include "monitor/node/observed.h"

namespace gpr {

namespace {

constexpr std::chrono::seconds between_expiries{1};

double seconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

// Of home and each acceptor.
struct Node {
    std::string name;
    uint64_t threads = 0, cpu_ns = 0;
    uint64_t arrivals = 0;  // of threads that came from home
    NodeCounts counts;
    LatencyHistogram waits;
    LinkStats link;  // of home's link to it
};

std::vector<Node> nodes_of(const home::Home& home, const std::vector<Observed>& seen) {
    std::vector<Node> nodes(1);
    Node& here = nodes.front();
    here.name = "home";
    here.counts.pages = home.pager.stats();
    here.waits = home.pager.faults.waits();
    Usage used = home.stats.home_cpu;
    for (const auto& [pid, process] : home.processes) {
        if (!process->finished) used += usage_of_process(pid);
    }
    here.cpu_ns = used.total_ns;
    home.acceptors.each([&](const home::RemoteNode& each) {
        Node node;
        node.name = home.options.acceptors.at(each.id - 1u).name;
        node.arrivals = each.counts.arrivals;
        node.counts = each.counts.told;
        node.link = each.link_stats();
        node.waits = seen.at(each.id - 1u).fault_waits;
        node.cpu_ns = each.counts.cpu.total_ns + seen[each.id - 1u].used.total_ns;
        nodes.push_back(std::move(node));
    });
    for (const auto& [tid, thread] : home.threads) {
        if (!thread->helper && !thread->ends()) nodes.at(thread->node).threads++;
    }
    return nodes;
}

void tell_memory(MetricsText& text, const std::vector<Node>& nodes) {
    text.begin_counter("gpr_faults_total", "Page faults that were served.");
    for (const Node& node : nodes) text.sample({{"node", node.name}}, node.counts.pages.faults);
    text.begin_histogram("gpr_fault_wait_seconds",
                         "From when a thread stood at a missing page until a page came.");
    for (const Node& node : nodes) text.sample({{"node", node.name}}, node.waits);
    text.begin_counter("gpr_pages_total", "Pages that came to a node, and that left it.");
    for (const Node& node : nodes) {
        text.sample({{"node", node.name}, {"direction", "in"}}, node.counts.pages.pages_in);
        text.sample({{"node", node.name}, {"direction", "out"}}, node.counts.pages.pages_out);
    }
}

void tell_calls(MetricsText& text, const std::vector<Node>& nodes, const SessionStats& stats) {
    text.begin_counter("gpr_calls_total", "System calls that acceptors saw, by who made them.");
    for (size_t i = 1; i < nodes.size(); i++) {
        const auto& [name, calls] = std::pair{nodes[i].name, nodes[i].counts.calls};
        text.sample({{"node", name}, {"made", "home"}}, calls.home);
        text.sample({{"node", name}, {"made", "native"}}, calls.native);
        text.sample({{"node", name}, {"made", "fd_owner"}}, calls.fd_owner);
        text.sample({{"node", name}, {"made", "by_rule"}}, calls.by_rule);
        text.sample({{"node", name}, {"made", "delegated"}}, calls.delegated);
        text.sample({{"node", name}, {"made", "remembered"}}, calls.remembered);
    }
    text.begin_counter("gpr_shown_contents_total",
                       "Mappings of files that acceptors showed from their caches.");
    for (size_t i = 1; i < nodes.size(); i++) {
        text.sample({{"node", nodes[i].name}}, nodes[i].counts.calls.shown_contents);
    }
    text.begin_histogram("gpr_call_seconds",
                         "What home needed for a call of a thread elsewhere, waiting included.");
    text.sample({}, stats.calls);
}

}  // namespace

SessionMetrics::SessionMetrics(Loop& loop, home::Home& home, MetricsServer server, size_t devices)
    : loop_(loop), home_(home), server_(std::move(server)), devices_(devices) {
    server_.on_asked([this](uint64_t id) { spawn(answer(this, id)); });
    watch_ = loop_.watch(server_.fd(), POLLIN, [this](uint32_t) { serve(); });
}

SessionMetrics::~SessionMetrics() {
    if (timer_ != 0) loop_.cancel(timer_);
}

void SessionMetrics::serve() {
    server_.serve();
    if (timer_ != 0 || !server_.is_busy()) return;
    timer_ = loop_.after(between_expiries, [this] {
        timer_ = 0;
        server_.expire();
        serve();
    });
}

Task<void> SessionMetrics::answer(SessionMetrics* self, uint64_t id) {
    home::Observations::Question question;
    const std::vector<Observed> seen = co_await self->home_.observations.ask(std::move(question));
    self->server_.answer(id, self->text(seen));
}

std::string SessionMetrics::text(const std::vector<Observed>& seen) const {
    const std::vector<Node> nodes = nodes_of(home_, seen);
    MetricsText text;
    text.begin_gauge("gpr_processes", "Processes of the session.");
    text.sample({}, uint64_t{home_.processes.size()});
    text.begin_gauge("gpr_devices", "Devices of acceptors that the session has.");
    text.sample({}, uint64_t{devices_});
    text.begin_counter("gpr_programs_total", "Programs that were started in the session.");
    text.sample({}, home_.stats.images);
    text.begin_gauge("gpr_threads", "Threads of the program, by where they are.");
    for (const Node& node : nodes) text.sample({{"node", node.name}}, node.threads);
    text.begin_counter("gpr_cpu_seconds_total", "Processor time that the program used.");
    for (const Node& node : nodes) text.sample({{"node", node.name}}, seconds(node.cpu_ns));
    text.begin_counter("gpr_crossings_total", "Threads that left home, and that came back.");
    uint64_t out = 0;
    for (const Node& node : nodes) out += node.arrivals;
    text.sample({{"direction", "out"}}, out);
    text.sample({{"direction", "back"}}, home_.stats.crossings - out);
    text.begin_histogram("gpr_crossing_seconds",
                         "What home needed to send a thread, and to let one that came go on.");
    text.sample({{"direction", "out"}}, home_.stats.departures);
    text.sample({{"direction", "back"}}, home_.stats.arrivals);
    tell_memory(text, nodes);
    tell_calls(text, nodes, home_.stats);
    text.begin_counter("gpr_bytes_total", "Bytes over the links, as home sees them.");
    for (size_t i = 1; i < nodes.size(); i++) {
        text.sample({{"node", nodes[i].name}, {"direction", "in"}}, nodes[i].link.bytes_in);
        text.sample({{"node", nodes[i].name}, {"direction", "out"}}, nodes[i].link.bytes_out);
    }
    return text.text();
}

}  // namespace gpr
