// Forks at node 0: an object is held, collected, and for a while the kernel there copies its
// memory. All that was ever written must be there from the first to the last moment.
#include <fmt/format.h>

#include <algorithm>

#include "sim_world.h"

namespace gpr::sim {

namespace {
constexpr uint64_t us = 1000;
constexpr uint64_t first_fork_cookie = 2'000'000;
constexpr uint64_t most_copies = 4;
constexpr uint64_t most_forks = 6;  // who forks for ever keeps all others from what they want
}  // namespace

void World::fork_of(ObjectId object) {
    if (!shape_.forks || totals_.forks >= most_forks || forks_.contains(object)) return;
    if (frozen_) return;
    Fork& fork = forks_[object];
    ++totals_.forks;
    ++collects_open_;
    log(fmt::format("fork: object {} is held", object));
    nodes_[0].agent->let_pages_wait(false, now_);
    directory_.hold(object);
    for (uint64_t i = 0; i < shape_.pages; ++i) {
        const PageKey key{object, i};
        // Without a version it may be that only its birth node has touched it.
        const NodeId birth = births_[object];
        const bool known = birth == 0
                               ? truth(0, key) > 0
                               : version_of(directory_.holders(key).epoch) > 0 ||
                                     (frame(birth, key) != nullptr &&
                                      nodes_[birth].generation[key] == nodes_[0].generation[key]);
        if (known) fork.wanted[key] = nodes_[0].generation[key];
    }
    drain(0);
    collect_when_all_is_sent(object);
}

void World::collect_when_all_is_sent(ObjectId object) {
    if (!nodes_[0].agent->leaving(only(object)).empty()) {
        after(5 * us, [this, object] { collect_when_all_is_sent(object); });
        return;
    }
    directory_.collect(object, 0, shape_.pages, 0, Access::read, first_fork_cookie + object, now_);
    drain_directory();
}

void World::check_fork(ObjectId object) {
    for (const auto& [key, generation] : forks_[object].wanted) {
        if (nodes_[0].generation[key] != generation) continue;  // dropped meanwhile
        if (!frame(0, key)) fail("a fork misses page " + to_string(key));
    }
}

void World::fork_collected(uint64_t cookie) {
    if (cookie < first_fork_cookie) return;
    const auto object = static_cast<ObjectId>(cookie - first_fork_cookie);
    // What node 0 says to itself has been heard by then; in the glue it is at once.
    after(10 * us, [this, object] {
        // What had been granted to node 0 before may still be on its way.
        for (const PageKey& key : nodes_[0].agent->arriving(only(object))) {
            if (directory_.holders(key).nodes & 1) forks_[object].arriving.insert(key);
        }
        copy_when_all_is_here(object);
    });
}

void World::copy_when_all_is_here(ObjectId object) {
    Fork& fork = forks_[object];
    std::erase_if(fork.arriving, [&](PageKey key) { return !nodes_[0].agent->is_arriving(key); });
    if (!fork.arriving.empty()) {
        after(5 * us, [this, object] { copy_when_all_is_here(object); });
        return;
    }
    check_fork(object);
    fork.copying = true;
    log(fmt::format("fork: object {} is being copied", object));
    after(random_.between(1, 150 * us), [this, object] {
        check_fork(object);
        forks_.erase(object);
        if (forks_.empty()) nodes_[0].agent->let_pages_wait(true, now_);
        log(fmt::format("fork: object {} is released", object));
        directory_.release(object, now_);
        drain_directory();
    });
}

// After every event: while the kernel copies, no page leaves.
void World::check_copies() {
    for (const auto& [object, fork] : forks_) {
        if (fork.copying) check_fork(object);
    }
}

// A fork that leaves pages where they are: no thread makes a step, nobody is given a page, and when
// all has been heard every node copies what it has.
void World::copy_of(ObjectId object) {
    if (!shape_.forks || totals_.copies >= most_copies || !forks_.empty() || frozen_) return;
    ++totals_.copies;
    frozen_ = true;
    for (auto& t : threads_) t->frozen_at = now_;
    log(fmt::format("copy: all threads stand, object {} is held", object));
    for (unsigned n = 0; n < nodes_.size(); ++n) {
        nodes_[n].agent->let_pages_wait(false, now_);
        drain(n);
    }
    directory_.hold_all(object);
    drain_directory();
    copy_when_quiet(object);
}

void World::copy_when_quiet(ObjectId object) {
    if (!all_is_heard(object)) {
        after(5 * us, [this, object] { copy_when_quiet(object); });
        return;
    }
    copy_object(object);
    for (Node& node : nodes_) node.agent->let_pages_wait(true, now_);
    directory_.release(object, now_);
    drain_directory();
    frozen_ = false;
    for (auto& t : threads_) {
        if (t->started != 0) t->started += now_ - std::max(t->frozen_at, t->started);
    }
}

bool World::all_is_heard(ObjectId object) const {
    const auto open = under_way_.find(object);
    if (open != under_way_.end() && open->second > 0) return false;
    for (const Node& node : nodes_) {
        const bool quiet =
            node.agent->is_quiet(only(object)) && node.agent->leaving(only(object)).empty();
        if (!quiet || node.applied != nodes_[0].applied) return false;
    }
    return directory_.is_quiet(only(object));
}

void World::copy_object(ObjectId from) {
    const ObjectId to = ++shape_.objects;
    log(fmt::format("copy: object {} becomes {} as well", from, to));
    births_[to] = births_[from];
    directory_.copy_object(from, to);
    for (Node& node : nodes_) {
        node.agent->copy_object(from, to);
        node.registered[to] = node.registered[from];
        for (uint64_t i = 0; i < shape_.pages; ++i) {
            const PageKey key{from, i}, copy{to, i};
            const auto frame = node.memory.find(key);
            if (frame != node.memory.end()) node.memory[copy] = frame->second;
            node.generation[copy] = node.generation[key];
            truth_[{copy, node.generation[copy]}] = truth_[{key, node.generation[key]}];
        }
    }
}

void World::go_on_later(Thread& t) {
    after(5 * us, [this, &t] {
        if (t.state == Thread::State::running) attempt(t);
    });
}

void World::note_message(const Message& message, int change) {
    std::visit(
        [&](const auto& body) {
            if constexpr (requires { body.run.object; }) {
                if (!std::holds_alternative<Request>(message.body)) {
                    under_way_[body.run.object] += change;
                }
            }
        },
        message.body);
}

}  // namespace gpr::sim
