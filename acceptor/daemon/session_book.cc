#include "acceptor/daemon/session_book.h"

#include <spdlog/spdlog.h>
#include <sys/wait.h>

#include <algorithm>
#include <ctime>

namespace gpr {

void SessionBook::came(pid_t worker, std::string peer, std::optional<SharedTally> tally) {
    Entry entry;
    entry.about.peer = std::move(peer);
    entry.tally = std::move(tally);
    entries_[worker] = std::move(entry);
}

void SessionBook::is_session(pid_t worker, const Hello& hello, const std::vector<Device>& devices) {
    const auto found = entries_.find(worker);
    if (found == entries_.end()) return;
    begun_++;
    found->second.is_session = true;
    SessionDescription& about = found->second.about;
    about.id = hello.session_id;
    about.host = hello.host.host_name;
    about.program = hello.program;
    about.since = time(nullptr);
    for (const Device& device : devices) about.devices.push_back(device.id);
}

void SessionBook::left(pid_t worker) {
    const auto entry = entries_.extract(worker);
    if (entry.empty() || !entry.mapped().tally) return;
    former_ += entry.mapped().tally->read();
    former_.threads = 0;
}

std::vector<SessionDescription> SessionBook::sessions() const {
    std::vector<SessionDescription> list;
    for (const auto& [worker, entry] : entries_) {
        if (!entry.is_session) continue;
        SessionDescription about = entry.about;
        if (entry.tally) {
            const SessionTally tally = entry.tally->read();
            about.cpu_ns = tally.cpu_ns;
            about.threads = static_cast<uint32_t>(tally.threads);
            about.bytes_in = tally.bytes_in;
            about.bytes_out = tally.bytes_out;
            about.arrivals = tally.arrivals;
            about.faults = tally.counts.pages.faults;
            about.calls = tally.counts.calls.home;
        }
        list.push_back(std::move(about));
    }
    std::ranges::stable_sort(list, {}, &SessionDescription::since);
    return list;
}

void SessionBook::tell_calls(MetricsText& text, const CallCounts& calls) {
    text.begin_counter("gpr_acceptor_calls_total", "System calls of sessions that were seen here.");
    text.sample({{"made", "home"}}, calls.home);
    text.sample({{"made", "native"}}, calls.native);
    text.sample({{"made", "fd_owner"}}, calls.fd_owner);
    text.sample({{"made", "by_rule"}}, calls.by_rule);
}

std::string SessionBook::metrics(const Host& host) const {
    SessionTally sum = former_;
    uint64_t sessions = 0;
    for (const auto& [worker, entry] : entries_) {
        sessions += entry.is_session ? 1 : 0;
        if (entry.tally) sum += entry.tally->read();
    }
    MetricsText text;
    text.begin_gauge("gpr_acceptor_sessions", "Sessions that are here now.");
    text.sample({}, sessions);
    text.begin_gauge("gpr_acceptor_sessions_max", "As many as there may be.");
    text.sample({}, uint64_t{host.most_sessions});
    text.begin_counter("gpr_acceptor_sessions_begun_total", "Sessions that have begun.");
    text.sample({}, begun_);
    text.begin_counter("gpr_acceptor_refused_total", "Peers with a token that were turned away.");
    text.sample({}, refused_);
    text.begin_gauge("gpr_acceptor_threads", "Threads of programs that are here now.");
    text.sample({}, sum.threads);
    text.begin_counter("gpr_acceptor_cpu_seconds_total", "Processor time that sessions used.");
    text.sample({}, static_cast<double>(sum.cpu_ns) / 1e9);
    text.begin_counter("gpr_acceptor_crossings_total", "Threads that came here.");
    text.sample({}, sum.arrivals);
    text.begin_counter("gpr_acceptor_faults_total", "Page faults of sessions that were served.");
    text.sample({}, sum.counts.pages.faults);
    text.begin_histogram("gpr_acceptor_fault_wait_seconds",
                         "From when a thread stood at a missing page until a page came.");
    text.sample({}, sum.fault_waits);
    text.begin_counter("gpr_acceptor_pages_total", "Pages that came and went.");
    text.sample({{"direction", "in"}}, sum.counts.pages.pages_in);
    text.sample({{"direction", "out"}}, sum.counts.pages.pages_out);
    tell_calls(text, sum.counts.calls);
    text.begin_counter("gpr_acceptor_bytes_total", "Bytes over the links of sessions.");
    text.sample({{"direction", "in"}}, sum.bytes_in);
    text.sample({{"direction", "out"}}, sum.bytes_out);
    text.begin_gauge("gpr_acceptor_device_sessions",
                     "Sessions that have a device; the acceptor knows devices once it was asked.");
    for (const Device& device : host.devices) {
        text.sample({{"device", device.id}, {"name", device.name}}, uint64_t{device.sessions});
    }
    return text.text();
}

void log_end(const EndedWorker& worker) {
    const auto what = worker.is_session ? "session" : "connection";
    if (WIFSIGNALED(worker.status)) {
        spdlog::warn("{}: {} ended after {:.1f} s, worker {} killed by signal {}", worker.peer,
                     what, worker.lasted.count(), worker.pid, WTERMSIG(worker.status));
    } else {
        spdlog::info("{}: {} ended after {:.1f} s, worker {} status {}", worker.peer, what,
                     worker.lasted.count(), worker.pid, WEXITSTATUS(worker.status));
    }
}

}  // namespace gpr
