#include "acceptor/worker/lookups.h"

#include <algorithm>

#include "acceptor/worker/files.h"
#include "acceptor/worker/forwarding.h"
#include "acceptor/worker/known_lookups.h"
#include "acceptor/worker/signals.h"
#include "acceptor/worker/worker.h"

namespace gpr::worker {

namespace {

using For = KnownLookups::For;

constexpr size_t most_asked = 4096;
constexpr size_t most_bytes = 4096;  // of an answer
constexpr unsigned most_ahead = 96;

// A thread elsewhere may change what the process sees under a path. A filter of the program's may
// forbid what is asked for.
bool all_here(const RemoteProcess& process, const RemoteThread& thread) {
    if (!thread.filters.empty() || process.closed.never) return false;
    if (process.debugged || process.goes_home || process.home_forks) return false;
    return std::ranges::all_of(process.threads,
                               [](const auto& other) { return other.second->here(); });
}

// ids: those that are common to all answers about this directory.
void keep_ahead(KnownLookups& known, const MarshalledCall& call, wire::LookupAhead::Reader told,
                std::vector<uint32_t> ids) {
    const auto directory = told.getDirectory().asChars(), name = told.getName().asChars();
    std::string path(directory.begin(), directory.end());
    if (path.empty()) {
        path = directory_part(lookup_of(call)->path);
    } else {
        ids.clear();
    }
    const bool is_name = std::ranges::find(name, '/') == name.end();
    path.append(name.begin(), name.end());
    const auto other = is_name ? with_path(call, path) : std::nullopt;
    if (!other) return;
    for (const uint32_t id : told.getIds()) ids.push_back(id);
    const auto asked = lookup_of(*other);
    if (known.find(*other, *asked, KnownLookups::Clock::now())) return;  // told before
    if (told.getError() == ENOENT || told.getError() == ENOTDIR) {
        return known.keep(*other, {-int64_t{told.getError()}, {}}, For::path, ids,
                          KnownLookups::Clock::now());
    }
    const auto status = told.getStatus();
    std::vector<std::byte> out =
        answer_with(*other, std::as_bytes(std::span(status.begin(), status.size())));
    if (out.empty() || !scatter(*other, out)) return;
    known.keep(*other, {0, std::move(out)}, For::file, ids, KnownLookups::Clock::now());
}

void keep_answer(KnownLookups& known, const MarshalledCall& call, KnownLookups::Answer answer,
                 wire::Lookup::Reader told) {
    const auto asked = lookup_of(call);
    if (!asked) return;
    if (asked->kind == LookupCall::Kind::open) known.note_spare(told.getSpare());
    std::vector<uint32_t> ids;
    for (const uint32_t id : told.getIds()) ids.push_back(id);
    const bool of_file = tells_status(*asked) && !told.getIsLink();
    const For which = told.getAbsent() ? For::path : of_file ? For::file : For::call;
    known.keep(call, std::move(answer), which, ids, KnownLookups::Clock::now());
    ids.resize(std::min<size_t>(ids.size(), told.getCommonIds()));
    const auto others = told.getOthers();
    for (unsigned i = 0; i < std::min(others.size(), most_ahead); i++) {
        keep_ahead(known, call, others[i], ids);
    }
}

}  // namespace

bool Lookups::is_remembered(const RemoteProcess& process, const RemoteThread& thread,
                            const MarshalledCall& call) const {
    const auto lookup = lookup_of(call);
    if (is_off_ || !lookup || !all_here(process, thread)) return false;
    return !worker_.files.has_rules() || worker_.files.is_of_home(lookup->path);
}

std::optional<MarshalledCall> Lookups::take_marshalled(const Notification& n) {
    if (!marshalled_ || marshalled_->first != n.id) return std::nullopt;
    auto [id, call] = *std::exchange(marshalled_, std::nullopt);
    const bool same = call.number == n.number && std::ranges::equal(call.args, n.args);
    return same ? std::optional(std::move(call)) : std::nullopt;
}

bool Lookups::wants(const RemoteProcess& process, const RemoteThread& thread,
                    const MarshalledCall& sent) {
    const std::pair<pid_t, pid_t> who{process.pid, thread.tid};
    if (!may_look_up(sent.number) || !is_remembered(process, thread, sent)) {
        asked_.erase(who);
        return false;
    }
    if (asked_.size() >= most_asked) asked_.clear();  // most of these have ended before the answer
    asked_[who] = sent;
    return true;
}

void Lookups::note_call(RemoteProcess& process, uint32_t number) {
    if (process.lookups) process.lookups->note_call_at_home(number);
}

void Lookups::on_answer(wire::CallReply::Reader reply, std::span<const std::byte> raw) {
    const auto asked = asked_.find({reply.getPid(), reply.getTid()});
    if (asked == asked_.end()) return;
    const MarshalledCall call = std::move(asked->second);
    asked_.erase(asked);
    if (!reply.hasLookup()) return;
    RemoteProcess* process = worker_.find_process(reply.getPid());
    const auto lookup = reply.getLookup();
    // What home has told of since it looked whether the answer holds.
    if (!process || lookup.getSerial() < last_gone_) return;
    if (raw.size() > most_bytes) return;
    if (!raw.empty() && !scatter(call, raw)) return;
    if (!process->lookups) process->lookups = std::make_shared<KnownLookups>();
    keep_answer(*process->lookups, call, {reply.getResult(), {raw.begin(), raw.end()}}, lookup);
}

void Lookups::on_gone(const Frame& frame) {
    const auto gone = frame->session().getLookupsGone();
    last_gone_ = std::max(last_gone_, gone.getSerial());
    for (const auto& [pid, process] : worker_.processes) {
        if (!process->lookups) continue;
        if (gone.getAll()) process->lookups->forget_all();
        for (const uint32_t id : gone.getIds()) process->lookups->forget(id);
    }
}

Task<bool> Lookups::answer(RemoteProcess& process, RemoteThread& thread, Notification n) {
    const pid_t pid = process.pid, tid = thread.tid;
    std::shared_ptr<Fragment> fragment = process.fragment;
    bool met_shared = false;
    auto marshalled = co_await worker_.forwarding.marshal_here(process, n, true, &met_shared);
    if (worker_.find_thread(pid, tid) != &thread) co_return true;
    auto* call = marshalled ? std::get_if<MarshalledCall>(&*marshalled) : nullptr;
    const auto lookup = call ? lookup_of(*call) : std::nullopt;
    if (!lookup || !process.lookups || !is_remembered(process, thread, *call)) co_return false;
    const KnownLookups::Answer* known = process.lookups->find(*call, *lookup, Clock::now());
    if (!known) {
        if (!met_shared) marshalled_ = {n.id, std::move(*call)};
        co_return false;
    }
    const std::vector<std::byte> out = known->out;
    int64_t result = known->result;
    if (!out.empty()) {
        result = co_await worker_.forwarding.write_answer(*fragment, *call, out, result);
    }
    if (worker_.find_thread(pid, tid) != &thread) co_return true;
    worker_.counts.remembered++;
    worker_.signals.hand_over_answered(thread);
    worker_.signals.note_interrupted(thread, false);
    process.notifier->reply_raw(n.id, result);
    co_return true;
}

}  // namespace gpr::worker
