// Time, the network, and the glue that carries out what the core asks for.
#include "sim_world.h"

#include <fmt/format.h>

#include <array>

namespace gpr::sim {

namespace {

constexpr uint64_t us = 1000;
// Every instruction must end by then: at worst all others go before, with 16 pages each (a chain of
// small instructions looks like one large), and each page costs a hold, a few ways through the
// network, and the supervisors' own use. Worlds with devices wait
// besides for the directory to try a pinned page again, with a back-off from 10 ms.
uint64_t longest_us(const Shape& s) {
    const uint64_t page_us = 6 * (s.net_us + s.net_jitter_us) + 500;
    // A page may be held back by each fork that begins meanwhile.
    return (s.threads + 3) * 16 * page_us * (s.forks ? 3 : 1) + (s.devices ? 1'000'000 : 0);
}

}  // namespace

std::string describe(const Message& message) {
    auto run = [](const PageRun& r) { return fmt::format("{}:{}+{}", r.object, r.first, r.count); };
    auto level = [](Presence p) {
        return p == Presence::none ? "none" : p == Presence::shared ? "shared" : "exclusive";
    };
    if (auto* q = std::get_if<Request>(&message.body)) {
        return fmt::format("request {} {} have {} age {} tid {}", run(q->run),
                           q->access == Access::write ? "write" : "read", level(q->have), q->age,
                           q->tid);
    }
    if (auto* g = std::get_if<Grant>(&message.body)) {
        return fmt::format("grant {} {} version {}{}", run(g->run), level(g->presence),
                           version_of(g->epochs[0]),
                           g->contents[0].kind == ContentKind::none ? " keep" : "");
    }
    if (auto* r = std::get_if<Recall>(&message.body)) {
        return fmt::format("recall {} leave {} version {} for {}/{}/{}{}", run(r->run),
                           level(r->leave), version_of(r->epochs[0]), r->for_whom.age,
                           r->for_whom.node, r->for_whom.tid, r->optional ? " optional" : "");
    }
    if (auto* s = std::get_if<Surrender>(&message.body)) {
        return fmt::format("surrender {} left {} version {} content {}", run(s->run),
                           level(s->left), version_of(s->epochs[0]),
                           static_cast<int>(s->contents[0].kind));
    }
    if (auto* p = std::get_if<Push>(&message.body)) {
        return fmt::format("push {} to {} left {} version {}", run(p->run), p->to, level(p->left),
                           version_of(p->epochs[0]));
    }
    if (auto* x = std::get_if<Refused>(&message.body)) return "refused " + run(x->run);
    return "ack";
}

std::string to_string(PageKey key) { return fmt::format("{}:{}", key.object, key.index); }

World::World(const Settings& settings) : settings_(settings), random_(settings.seed) {
    Random& r = random_;
    shape_.objects = static_cast<unsigned>(r.between(1, 3));
    shape_.pages = static_cast<unsigned>(r.percent(50) ? r.between(1, 6) : r.between(4, 24));
    shape_.threads = static_cast<unsigned>(r.percent(80) ? r.between(2, 6) : r.between(6, 12));
    shape_.instructions = static_cast<unsigned>(r.between(5, 60));
    shape_.most_pages = static_cast<unsigned>(r.percent(40) ? 1 : r.between(2, 16));
    shape_.net_us = r.between(1, 60);
    shape_.net_jitter_us = r.percent(20) ? 500 : r.between(0, 60);
    shape_.write_percent = static_cast<unsigned>(r.between(10, 90));
    shape_.drop_percent = r.percent(50) ? static_cast<unsigned>(r.between(1, 15)) : 0;
    shape_.cross_percent = r.percent(60) ? static_cast<unsigned>(r.between(1, 40)) : 0;
    shape_.progress_percent = static_cast<unsigned>(r.between(0, 100));
    shape_.far_wake_percent = r.percent(20) ? 5 : 0;
    shape_.devices = r.percent(30);
    shape_.acquires = r.percent(40);
    shape_.collects = r.percent(25);
    shape_.walk_percent = 0;
    ReadAheadOptions ahead;
    if (r.percent(40)) {
        shape_.walk_percent = static_cast<unsigned>(r.between(50, 100));
        shape_.pages = static_cast<unsigned>(r.between(24, 160));
        shape_.instructions = static_cast<unsigned>(r.between(40, 200));
        shape_.copies = r.percent(30);
        ahead.chunk = static_cast<uint32_t>(r.between(2, 16));
        ahead.most_ahead = static_cast<uint32_t>(r.between(4, 64));
        ahead.comfortable = static_cast<uint32_t>(r.between(1, 16));
        ahead.least_with_marker = static_cast<uint32_t>(r.between(1, 4));
    }

    shape_.forks = !shape_.devices && !shape_.copies && r.percent(20);
    if (shape_.forks) shape_.collects = false;  // those go to any node
    limit_us_ = longest_us(shape_);

    AgentOptions options;
    options.read_ahead = ahead;
    nodes_.resize(settings.nodes);
    for (unsigned n = 0; n < settings.nodes; ++n) {
        nodes_[n].agent = std::make_unique<PageAgent>(static_cast<NodeId>(n), options);
        nodes_[n].applied.assign(settings.nodes, 0);
    }
    if (settings.record_bytes > 0) {
        record_.resize(settings.record_bytes);
        log_ = std::make_unique<DirectoryLog>(record_, settings.seed);
        log_->record(directory_);
    }
    for (ObjectId object = 1; object <= shape_.objects; ++object) {
        births_[object] = static_cast<unsigned>(r.between(0, settings.nodes - 1));
        directory_.add_object(object, static_cast<NodeId>(births_[object]));
        for (Node& node : nodes_) {
            node.agent->add_object(object, static_cast<NodeId>(births_[object]));
        }
        if (r.percent(50)) nodes_[births_[object]].registered[object] = true;
    }
    for (unsigned i = 0; i < shape_.threads; ++i) {
        auto t = std::make_unique<Thread>();
        t->tid = static_cast<Tid>(100 + i);
        t->node = static_cast<unsigned>(r.between(0, settings.nodes - 1));
        t->left = shape_.instructions;
        threads_.push_back(std::move(t));
    }
}

Totals World::run() {
    unfinished_ = static_cast<unsigned>(threads_.size());
    for (auto& t : threads_) {
        after(random_.between(0, 50 * us),
              [this, thread = t.get()] { start_instruction(*thread); });
    }
    if (shape_.devices || shape_.acquires || shape_.collects || shape_.copies || shape_.forks) {
        after(30 * us, [this] { disturb(); });
    }
    while (!events_.empty()) {
        step();
        if (totals_.events > 5'000'000) fail("no end: more events than any right run needs");
    }
    if (unfinished_ > 0) fail("stuck: threads wait and nothing is under way");
    if (collects_open_ > 0) fail("a collect never ended");
    totals_.percent_of_limit = totals_.longest_us * 100 / limit_us_;
    if (!acquires_.empty()) fail("an acquire never ended");
    finish();
    if (log_) replay_record();
    return totals_;
}

// A fresh directory that is told the same decides the same, and ends as this one did.
void World::replay_record() {
    PageDirectory fresh;
    const DirectoryReplay result = replay(record_, fresh);
    if (!result.problem.empty()) fail("replay: " + result.problem);
    if (fresh.save() != directory_.save()) fail("a replay ends with another state");
    totals_.replayed += result.decisions;
    totals_.overwritten += result.segments < log_->segments();
}

// In the end everything can be brought home, and every write is there.
void World::finish() {
    shape_.collects = false;
    for (Node& node : nodes_) {
        totals_.markers_kept += node.agent->stats().markers_kept;
        totals_.markers_reached += node.agent->stats().markers_reached;
        totals_.rights_given += node.agent->stats().rights_given;
    }
    // As before a fork: the pages must really be there.
    nodes_[0].agent->let_pages_wait(false, now_);
    drain(0);
    for (const auto& [object, birth] : births_) {
        ++collects_open_;
        directory_.collect(object, 0, shape_.pages, 0, Access::write, 1'000'000 + object, now_);
    }
    drain_directory();
    while (!events_.empty()) step();
    if (collects_open_ > 0) fail("the last collect never ended");
    for (const auto& [object, birth] : births_) {
        for (uint64_t i = 0; i < shape_.pages; ++i) {
            const PageKey key{object, i};
            const Frame* home = frame(0, key);
            const uint64_t value = home ? home->value : 0;
            if (value != truth(0, key)) {
                fail(fmt::format("page {} ends as {}, should be {}", to_string(key), value,
                                 truth(0, key)));
            }
            for (unsigned n = 1; n < nodes_.size(); ++n) {
                if (frame(n, key)) fail("page " + to_string(key) + " is not home alone");
            }
            if (directory_.holders(key).busy) fail("page " + to_string(key) + " stays busy");
        }
    }
}

void World::after(uint64_t delay_ns, std::function<void()> work) {
    events_.push({now_ + delay_ns, next_event_++, std::move(work)});
}

void World::step() {
    auto work = std::move(const_cast<Event&>(events_.top()).work);
    now_ = std::max(now_, events_.top().at);
    events_.pop();
    ++totals_.events;
    work();
    check_copies();
    for (const auto& t : threads_) {
        if (t->state == Thread::State::finished) continue;
        if (t->started != 0 && now_ - t->started > limit_us_ * us) {
            fail(fmt::format("thread {} made no progress for {} ms", t->tid,
                             (now_ - t->started) / 1'000'000));
        }
    }
}

void World::log(const std::string& line) {
    if (settings_.verbose) fmt::print("{:>10.1f} {}\n", static_cast<double>(now_) / 1000, line);
}

void World::fail(const std::string& why) {
    throw Failure(fmt::format("at {:.1f} us: {}", static_cast<double>(now_) / 1000, why));
}

// Two streams each way, in order within a stream, freely overtaking between them.
void World::send(unsigned from, unsigned to, bool to_directory, Message message) {
    ++totals_.messages;
    note_message(message, 1);
    const bool local = from == to;
    const auto stream = static_cast<unsigned>(random_.between(0, 1));
    uint64_t at =
        now_ + (local ? random_.between(0, 2 * us)
                      : shape_.net_us * us + random_.between(0, shape_.net_jitter_us * us));
    uint64_t& free = stream_free_[{from, to, stream + (to_directory ? 2 : 0)}];
    at = free = std::max(at, free + 1);
    Envelope envelope{from, to_directory, std::move(message), nodes_[from].applied};
    after(at - now_, [this, to, e = std::make_shared<Envelope>(std::move(envelope))] {
        deliver(to, std::move(*e));
    });
}

// A message waits for the metadata that its sender knew.
void World::deliver(unsigned to, Envelope envelope) {
    Node& node = nodes_[to];
    for (unsigned n = 0; n < nodes_.size(); ++n) {
        if (node.applied[n] >= envelope.needs[n]) continue;
        node.held.push_back(std::move(envelope));
        return;
    }
    note_message(envelope.message, -1);
    if (settings_.verbose) {
        log(fmt::format("{} {}: {}", envelope.from,
                        envelope.to_directory ? "to directory" : fmt::format("to {}", to),
                        describe(envelope.message)));
    }
    if (envelope.to_directory) {
        directory_.on_message(static_cast<NodeId>(envelope.from), std::move(envelope.message),
                              now_);
        drain_directory();
    } else {
        node.agent->on_message(std::move(envelope.message), now_);
        drain(to);
    }
}

void World::drain_directory() {
    std::vector<Action> actions;
    directory_.drain(actions);
    for (Action& action : actions) {
        if (auto* out = std::get_if<SendMessage>(&action)) {
            send(0, out->to, false, std::move(out->message));
        } else if (auto* done = std::get_if<CollectDone>(&action)) {
            --collects_open_;
            fork_collected(done->cookie);
        } else {
            fail("the directory asked for something that only an agent may");
        }
    }
}

void World::drain(unsigned node) {
    std::vector<Action> actions;
    nodes_[node].agent->drain(actions);
    for (Action& action : actions) perform(node, action);
    arm_timer(node);
}

void World::perform(unsigned n, Action& action) {
    // Now and then a supervisor's helper has other things to do first.
    const uint64_t delay = random_.percent(shape_.forks ? 40 : 5)
                               ? random_.between(5 * us, 200 * us)
                               : random_.between(500, 5 * us);
    if (auto* a = std::get_if<Install>(&action)) {
        after(delay, [this, n, a = std::move(*a)] { install(n, a); });
    } else if (auto* u = std::get_if<Unprotect>(&action)) {
        after(delay, [this, n, u = *u] { unprotect(n, u); });
    } else if (auto* t = std::get_if<Take>(&action)) {
        after(delay, [this, n, t = *t] { take(n, t); });
    } else if (auto* f = std::get_if<FindTouched>(&action)) {
        after(delay, [this, n, f = *f] { find_touched(n, f); });
    } else if (auto* s = std::get_if<SendMessage>(&action)) {
        send(n, s->to, true, std::move(s->message));
    } else if (auto* w = std::get_if<Wake>(&action)) {
        wake(n, w->key);
    } else if (auto* d = std::get_if<AcquireDone>(&action)) {
        acquired(n, *d);
    } else if (auto* x = std::get_if<Anchored>(&action)) {
        ++totals_.anchored;
        for (auto& thread : threads_) {
            if (thread->tid == x->tid && thread->node == n &&
                thread->state == Thread::State::blocked) {
                cross(*thread, x->anchor, false);
            }
        }
    } else {
        fail("an agent asked for something that only the directory may");
    }
}

void World::install(unsigned n, const Install& action) {
    Node& node = nodes_[n];
    for (uint32_t i = 0; i < action.run.count; ++i) {
        const PageKey key = action.run[i];
        if (!node.agent->is_current(action.id, key)) continue;
        const PageContent& content = action.contents[i];
        const uint64_t value = content.kind == ContentKind::data
                                   ? *reinterpret_cast<const uint64_t*>(content.bytes.get())
                                   : 0;
        if (frame(n, key)) {
            const bool born_here = births_[key.object] == n && content.kind == ContentKind::zero;
            if (!born_here) fail("install over a page that is there: " + to_string(key));
        } else {
            node.memory[key] = {value, action.presence == Presence::exclusive, false};
        }
        check_page(key);
        log(fmt::format("node {} installs {} {}", n, to_string(key),
                        action.presence == Presence::exclusive ? "exclusive" : "shared"));
        if (action.wake) wake(n, key);
    }
    node.agent->on_installed(action.id, now_);
    drain(n);
}

void World::unprotect(unsigned n, const Unprotect& action) {
    Node& node = nodes_[n];
    for (uint32_t i = 0; i < action.run.count; ++i) {
        const PageKey key = action.run[i];
        if (!node.agent->is_current(action.id, key)) continue;
        Frame* f = frame(n, key);
        if (!f) fail("unprotect of a page that is not there: " + to_string(key));
        f->writable = true;
        check_page(key);
        log(fmt::format("node {} may write {}", n, to_string(key)));
        if (action.wake) wake(n, key);
    }
    node.agent->on_installed(action.id, now_);
    drain(n);
}

void World::find_touched(unsigned n, const FindTouched& action) {
    const uint64_t looked = random_.between(1, action.run.count);
    std::vector<PageSpan> touched;
    for (uint32_t i = 0; i < looked; ++i) {
        if (frame(n, action.run[i])) touched.push_back({action.run.first + i, 1});
    }
    nodes_[n].agent->on_found(action.id, looked, touched, now_);
    drain(n);
}

void World::take(unsigned n, const Take& action) {
    Node& node = nodes_[n];
    node.registered[action.run.object] = true;
    std::vector<TakeResult> results(action.run.count);
    for (uint32_t i = 0; i < action.run.count; ++i) {
        const PageKey key = action.run[i];
        TakeResult& result = results[i];
        result.kind = Taken::zero;
        Frame* f = frame(n, key);
        if (!node.agent->is_current(action.id, key) || !f) continue;
        if (f->pinned) {
            result.kind = Taken::pinned;
            continue;
        }
        log(fmt::format("node {} takes {} leaving {}", n, to_string(key),
                        action.leave == Presence::none ? "none" : "shared"));
        result.kind = action.want_data ? Taken::data : Taken::none;
        if (action.want_data) {
            auto page = std::make_shared<std::array<uint64_t, 512>>();
            page->front() = f->value;
            result.bytes = {page, reinterpret_cast<const std::byte*>(page->data())};
        }
        if (action.leave == Presence::none) {
            node.memory.erase(key);
        } else {
            f->writable = false;
        }
    }
    node.agent->on_taken(action.id, std::move(results), now_);
    drain(n);
}

void World::arm_timer(unsigned n) {
    Node& node = nodes_[n];
    const uint64_t deadline = node.agent->next_deadline();
    if (deadline == UINT64_MAX || deadline >= node.timer_at) return;
    node.timer_at = deadline;
    after(deadline > now_ ? deadline - now_ : 0, [this, n, deadline] {
        if (nodes_[n].timer_at == deadline) nodes_[n].timer_at = UINT64_MAX;
        nodes_[n].agent->on_timer(now_);
        drain(n);
    });
}

void World::wake(unsigned n, PageKey key) {
    for (auto& t : threads_) {
        if (t->state != Thread::State::blocked || t->node != n || t->blocked_on != key) continue;
        t->state = Thread::State::running;
        const uint64_t delay = random_.percent(shape_.far_wake_percent)
                                   ? random_.between(0, 400 * us)
                                   : random_.between(0, 40 * us);
        after(delay, [this, thread = t.get()] {
            if (thread->state == Thread::State::running) attempt(*thread);
        });
    }
}

}  // namespace gpr::sim
