// What the simulated program does: instructions on several pages, drops, crossings, devices, and
// the needs of its supervisors.
#include <fmt/format.h>

#include "sim_world.h"

namespace gpr::sim {

namespace {
constexpr uint64_t us = 1000;
}  // namespace

Frame* World::frame(unsigned n, PageKey key) {
    auto it = nodes_[n].memory.find(key);
    return it == nodes_[n].memory.end() ? nullptr : &it->second;
}

PageKey World::random_page() {
    return {static_cast<ObjectId>(random_.between(1, shape_.objects)),
            random_.between(0, shape_.pages - 1)};
}

uint64_t& World::truth(unsigned n, PageKey key) { return truth_[{key, nodes_[n].generation[key]}]; }

// Single writer or many readers, among the nodes for which the page is of the same generation.
void World::check_page(PageKey key) {
    for (unsigned a = 0; a < nodes_.size(); ++a) {
        const Frame* fa = frame(a, key);
        if (!fa) continue;
        if (fa->value != truth(a, key)) {
            fail(fmt::format("node {} has {} as {}, should be {}", a, to_string(key), fa->value,
                             truth(a, key)));
        }
        for (unsigned b = 0; b < nodes_.size(); ++b) {
            if (a == b || !fa->writable || !frame(b, key)) continue;
            if (nodes_[a].generation[key] == nodes_[b].generation[key]) {
                fail(
                    fmt::format("node {} may write {} while node {} has it", a, to_string(key), b));
            }
        }
    }
}

bool World::usable(unsigned n, Need need) {
    Frame* f = frame(n, need.key);
    if (!f && births_[need.key.object] == n && !nodes_[n].registered[need.key.object]) {
        f = &(nodes_[n].memory[need.key] = {0, true, false});
        check_page(need.key);
    }
    return f && (f->writable || need.access == Access::read);
}

void World::touch(unsigned n, Need need) {
    Frame* f = frame(n, need.key);
    if (!f || (need.access == Access::write && !f->writable)) {
        fail(fmt::format("node {} lacks {} when it is used", n, to_string(need.key)));
    }
    uint64_t& value = truth(n, need.key);
    if (f->value != value) {
        fail(fmt::format("node {} reads {} as {}, should be {}", n, to_string(need.key), f->value,
                         value));
    }
    if (need.access == Access::write) f->value = ++value;
}

void World::start_instruction(Thread& t) {
    t.needs.clear();
    t.started = now_;
    if (random_.percent(shape_.walk_percent) && walk_on(t)) return attempt(t);
    const uint64_t count =
        std::min<uint64_t>(random_.between(1, shape_.most_pages), shape_.pages * shape_.objects);
    while (t.needs.size() < count) {
        const PageKey key = random_page();
        const Access access = random_.percent(shape_.write_percent) ? Access::write : Access::read;
        bool known = false;
        for (const Need& need : t.needs) known |= need.key == key;
        if (!known) t.needs.push_back({key, access});
    }
    attempt(t);
}

// From one end of an object towards the other, page by page or in larger steps.
bool World::walk_on(Thread& t) {
    if (t.walk_left == 0) {
        const auto stride = static_cast<int64_t>(random_.percent(70) ? 1 : random_.between(2, 5));
        const bool backwards = random_.percent(25);
        t.walk = random_page();
        t.walk_stride = backwards ? -stride : stride;
        t.walk_access = random_.percent(shape_.write_percent) ? Access::write : Access::read;
        const uint64_t room = backwards ? t.walk.index : shape_.pages - 1 - t.walk.index;
        t.walk_left = static_cast<unsigned>(room / static_cast<uint64_t>(stride));
        if (t.walk_left == 0) return false;
    }
    --t.walk_left;
    t.needs.push_back({t.walk, t.walk_access});
    t.walk.index += static_cast<uint64_t>(t.walk_stride);
    return true;
}

// The instruction runs from its start until the first page that is not there.
void World::attempt(Thread& t) {
    if (frozen_) return go_on_later(t);
    for (const Need& need : t.needs) {
        if (!usable(t.node, need)) return fault(t, need);
    }
    for (const Need& need : t.needs) touch(t.node, need);
    complete(t);
}

void World::fault(Thread& t, Need need) {
    ++totals_.faults;
    t.state = Thread::State::blocked;
    t.blocked_on = need.key;
    const uint64_t number = ++t.fault_number;
    log(fmt::format("thread {} on {} faults at {} {}", t.tid, t.node, to_string(need.key),
                    need.access == Access::write ? "write" : "read"));
    const uint64_t left = shape_.pages - 1 - need.key.index;
    const Fault f{need.key,
                  need.access,
                  t.tid,
                  static_cast<uint32_t>(random_.percent(20) ? random_.between(0, left) : 0),
                  need.key.index,
                  left,
                  random_.percent(90)};
    // Read once, sometimes twice, sometimes only after the thread has long gone on.
    const int times = random_.percent(10) ? 2 : 1;
    for (int i = 0; i < times; ++i) {
        const bool stale = random_.percent(5);
        after(random_.between(500, i == 0 ? 5 * us : 60 * us),
              [this, &t, f, number, stale, n = t.node] {
                  const bool waits = t.state == Thread::State::blocked && t.fault_number == number;
                  if (!waits && (!stale || t.node != n || t.state == Thread::State::moving)) return;
                  nodes_[n].agent->on_fault(f, now_);
                  drain(n);
              });
    }
}

void World::complete(Thread& t) {
    ++totals_.instructions;
    const uint64_t took = (now_ - t.started) / us;
    totals_.longest_us = std::max(totals_.longest_us, took);
    log(fmt::format("thread {} on {} completes {} pages after {} us", t.tid, t.node, t.needs.size(),
                    took));
    t.started = 0;
    if (random_.percent(shape_.progress_percent)) {
        nodes_[t.node].agent->on_progress(t.tid, now_);
        drain(t.node);
    } else if (random_.percent(shape_.progress_percent)) {
        after(random_.between(0, 60 * us), [this, tid = t.tid, node = t.node] {
            nodes_[node].agent->on_past_progress(tid, now_);
            drain(node);
        });
    }
    if (random_.percent(shape_.drop_percent)) drop(t.node);
    if (--t.left == 0) {
        t.state = Thread::State::finished;
        --unfinished_;
        nodes_[t.node].agent->on_thread_gone(t.tid, now_);
        return drain(t.node);
    }
    if (random_.percent(shape_.cross_percent)) {
        return cross(t, static_cast<unsigned>(random_.between(0, nodes_.size() - 1)), true);
    }
    after(random_.between(0, 30 * us), [this, &t] { start_instruction(t); });
}

// The thread goes to another node, perhaps with pages it just used.
void World::cross(Thread& t, unsigned to, bool push) {
    PageAgent& agent = *nodes_[t.node].agent;
    const bool retry = t.started != 0;
    t.state = Thread::State::moving;
    ++t.fault_number;
    if (to != t.node) {
        if (push) {
            agent.on_progress(t.tid, now_);
            for (const Need& need : t.needs) {
                const Access access = random_.percent(50) ? Access::write : Access::read;
                // The glue's part of a hold.
                const bool held = t.node == 0 && forks_.contains(need.key.object);
                if (!held && random_.percent(40) &&
                    agent.give_away(need.key, static_cast<NodeId>(to), access, t.tid, now_)) {
                    ++totals_.pushes;
                    log(fmt::format("thread {} takes {} along to {}", t.tid, to_string(need.key),
                                    to));
                }
            }
        }
        agent.on_thread_gone(t.tid, now_);
        drain(t.node);
        // What has just been given away is not sent yet.
        if (push && t.node == 0 && random_.percent(10)) fork_of(t.needs.front().key.object);
    }
    after(shape_.net_us * us + random_.between(0, 20 * us), [this, &t, to, retry] {
        t.node = to;
        t.state = Thread::State::running;
        if (retry) {
            attempt(t);
        } else {
            start_instruction(t);
        }
    });
}

// munmap or MADV_DONTNEED on one node. The others learn it by metadata, through node 0.
void World::drop(unsigned n) {
    ++totals_.drops;
    const PageKey key = random_page();
    const uint64_t count = random_.between(1, shape_.pages - key.index);
    const Drop d{next_drop_++, n, key.object, key.index, count};
    apply_drop(n, d);
}

void World::apply_drop(unsigned n, const Drop& d) {
    Node& node = nodes_[n];
    log(fmt::format("node {} drops {}:{}+{}", n, d.object, d.first, d.count));
    for (uint64_t i = d.first; i < d.first + d.count; ++i) {
        node.memory.erase({d.object, i});
        node.generation[{d.object, i}] ^= d.id * 0x9E3779B97F4A7C15ULL;
    }
    node.agent->drop(d.object, d.first, d.count);
    if (n == 0) directory_.drop(d.object, d.first, d.count);
    ++node.applied[d.origin];
    drain(n);
    if (n == 0) drain_directory();
    for (unsigned to = 0; to < nodes_.size(); ++to) {
        const bool forward = n == 0 ? to != 0 && to != d.origin : to == 0 && d.origin == n;
        if (!forward) continue;
        uint64_t& free = stream_free_[{n, to, 9}];
        free = std::max(free + 1,
                        now_ + shape_.net_us * us + random_.between(0, shape_.net_jitter_us * us));
        after(free - now_, [this, to, d] { apply_drop(to, d); });
    }
    std::vector<Envelope> held;
    held.swap(node.held);
    for (Envelope& e : held) deliver(n, std::move(e));
}

// A device keeps a page in place and writes to it for a while.
void World::pin_something() {
    const auto n = static_cast<unsigned>(random_.between(0, nodes_.size() - 1));
    const PageKey key = random_page();
    Frame* f = frame(n, key);
    if (!f || !f->writable || f->pinned) return;
    f->pinned = true;
    ++totals_.pins;
    log(fmt::format("node {} pins {}", n, to_string(key)));
    device_writes(n, key, nodes_[n].generation[key], static_cast<unsigned>(random_.between(1, 8)));
}

void World::device_writes(unsigned n, PageKey key, uint64_t generation, unsigned left) {
    after(random_.between(1, 100 * us), [this, n, key, generation, left] {
        if (nodes_[n].generation[key] != generation) return;  // dropped: the device has an orphan
        touch(n, {key, Access::write});
        if (left > 0) return device_writes(n, key, generation, left - 1);
        frame(n, key)->pinned = false;
    });
}

void World::acquire_something() {
    const auto n = static_cast<unsigned>(random_.between(0, nodes_.size() - 1));
    Node& node = nodes_[n];
    if (node.acquiring) return;
    node.acquiring = true;
    ++totals_.acquires;
    std::vector<PageRun> runs;
    const PageKey key = random_page();
    runs.push_back({key.object, key.index,
                    static_cast<uint32_t>(
                        random_.between(1, std::min<uint64_t>(8, shape_.pages - key.index)))});
    const PageKey other = random_page();
    if (other.object != key.object) runs.push_back({other.object, other.index, 1});
    const Access access = random_.percent(50) ? Access::write : Access::read;
    const bool hold = random_.percent(40);
    const uint64_t cookie = node.next_cookie++;
    acquires_[{n, cookie}] = {runs, {access, hold}};
    log(fmt::format("node {} acquires {}+{}", n, to_string(key), runs[0].count));
    node.agent->acquire(runs, access, cookie, hold, now_);
    drain(n);
}

void World::acquired(unsigned n, const AcquireDone& done) {
    auto it = acquires_.find({n, done.cookie});
    if (it == acquires_.end()) fail("an acquire ended twice");
    const auto [runs, how] = it->second;
    const auto [access, hold] = how;
    if (done.refused) {
        acquires_.erase(it);
        nodes_[n].acquiring = false;
        return;
    }
    std::vector<uint64_t> generations;
    for (const PageRun& run : runs) {
        for (uint32_t i = 0; i < run.count; ++i)
            generations.push_back(nodes_[n].generation[run[i]]);
    }
    use_acquired(n, runs, access, generations);
    acquires_.erase(it);
    nodes_[n].acquiring = hold;
    if (!hold) return;
    after(random_.between(1, 300 * us), [this, n, runs = runs, access = access, generations, done] {
        use_acquired(n, runs, access, generations);
        nodes_[n].acquiring = false;
        nodes_[n].agent->release(done.cookie, now_);
        drain(n);
    });
}

void World::use_acquired(unsigned n, const std::vector<PageRun>& runs, Access access,
                         const std::vector<uint64_t>& generations) {
    size_t at = 0;
    for (const PageRun& run : runs) {
        for (uint32_t i = 0; i < run.count; ++i) {
            if (nodes_[n].generation[run[i]] == generations[at++]) touch(n, {run[i], access});
        }
    }
}

void World::collect_something() {
    const PageKey key = random_page();
    ++collects_open_;
    ++totals_.collects;
    log(fmt::format("collect {} to the end", to_string(key)));
    directory_.collect(key.object, key.index, shape_.pages - key.index,
                       static_cast<NodeId>(random_.between(0, nodes_.size() - 1)),
                       random_.percent(50) ? Access::write : Access::read, totals_.collects, now_);
    drain_directory();
}

// A kernel copies the memory of a node: for that time no page waits outside of it.
void World::copy_memory() {
    const auto n = static_cast<unsigned>(random_.between(0, nodes_.size() - 1));
    nodes_[n].agent->let_pages_wait(false, now_);
    drain(n);
    after(random_.between(10 * us, 100 * us),
          [this, n] { nodes_[n].agent->let_pages_wait(true, now_); });
}

void World::disturb() {
    if (!busy()) return;
    if (shape_.devices && random_.percent(30)) pin_something();
    if (shape_.acquires && random_.percent(30)) acquire_something();
    if (shape_.collects && random_.percent(10)) collect_something();
    if (shape_.copies && random_.percent(10)) copy_memory();
    if (random_.percent(15)) fork_of(random_page().object);
    if (random_.percent(15)) copy_of(random_page().object);
    after(random_.between(10 * us, 200 * us), [this] { disturb(); });
}

}  // namespace gpr::sim
