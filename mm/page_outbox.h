// Collects actions page by page and joins those for adjacent pages into runs, so that the logic
// before it can deal with one page at a time.
#pragma once

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mm/page_actions.h"

namespace gpr {

class Outbox {
public:
    void add(Action action) { actions_.push_back(std::move(action)); }

    // Extends a message of type Body to `to` that ends right before `key` and for which same(body)
    // holds, by one page; if there is none, adds one from create(), which has an empty run.
    template <class Body, class Same, class Create>
    Body& extend_message(NodeId to, PageKey key, bool bulk, uint64_t clock, Same same,
                         Create create) {
        for (size_t i = actions_.size(), tries = 0; i > 0 && tries < look_back; ++tries) {
            auto* send = std::get_if<SendMessage>(&actions_[--i]);
            if (!send || send->to != to || send->bulk != bulk) continue;
            auto* body = std::get_if<Body>(&send->message.body);
            if (!body || !follows(body->run, key) || !same(*body)) continue;
            ++body->run.count;
            return *body;
        }
        actions_.push_back(SendMessage{to, bulk, Message{clock, create()}});
        auto& body = std::get<Body>(std::get<SendMessage>(actions_.back()).message.body);
        body.run = {key.object, key.index, 1};
        return body;
    }

    // The body of the last action, if that is a message of this type to `to`.
    template <class Body>
    Body* last_message(NodeId to) {
        if (actions_.empty()) return nullptr;
        auto* send = std::get_if<SendMessage>(&actions_.back());
        return send && send->to == to ? std::get_if<Body>(&send->message.body) : nullptr;
    }

    // The same for actions that have a run themselves.
    template <class T, class Same, class Create>
    T& extend_action(PageKey key, Same same, Create create) {
        for (size_t i = actions_.size(), tries = 0; i > 0 && tries < look_back; ++tries) {
            auto* action = std::get_if<T>(&actions_[--i]);
            if (!action || !follows(action->run, key) || !same(*action)) continue;
            ++action->run.count;
            return *action;
        }
        actions_.push_back(create());
        auto& action = std::get<T>(actions_.back());
        action.run = {key.object, key.index, 1};
        return action;
    }

    void drain(std::vector<Action>& into) {
        into.clear();
        std::swap(into, actions_);
    }

    [[nodiscard]] bool empty() const { return actions_.empty(); }

private:
    // Enough for the few nodes and kinds between which one event alternates.
    static constexpr size_t look_back = 4;

    static bool follows(const PageRun& run, PageKey key) {
        return run.object == key.object && run.first + run.count == key.index &&
               run.count < max_run_pages;
    }

    std::vector<Action> actions_;
};

struct PageKeyHash {
    size_t operator()(const PageKey& key) const {
        uint64_t h =
            (key.index + (static_cast<uint64_t>(key.object) << 36)) * 0x9E3779B97F4A7C15ULL;
        return h ^ (h >> 32);
    }
};

// A map of pages whose entries come and go all the time: nodes are reused, with the memory that
// their vectors have.
template <class T>
class PageMap {
public:
    using Map = std::unordered_map<PageKey, T, PageKeyHash>;

    T* find(PageKey key) {
        auto it = map_.find(key);
        return it == map_.end() ? nullptr : &it->second;
    }
    const T* find(PageKey key) const {
        auto it = map_.find(key);
        return it == map_.end() ? nullptr : &it->second;
    }
    [[nodiscard]] bool contains(PageKey key) const { return map_.contains(key); }
    // The entry must not exist.
    T& add(PageKey key) {
        if (spare_.empty()) return map_.try_emplace(key).first->second;
        auto node = std::move(spare_.back());
        spare_.pop_back();
        node.key() = key;
        return map_.insert(std::move(node)).position->second;
    }
    void erase(PageKey key) {
        auto node = map_.extract(key);
        if (node.empty() || spare_.size() >= most_spare) return;
        node.mapped().recycle();
        spare_.push_back(std::move(node));
    }
    [[nodiscard]] bool empty() const { return map_.empty(); }
    [[nodiscard]] size_t memory_bytes() const {
        return (map_.size() + spare_.size()) * (sizeof(typename Map::value_type) + 32);
    }
    auto begin() const { return map_.begin(); }
    auto end() const { return map_.end(); }

private:
    static constexpr size_t most_spare = 1024;
    Map map_;
    std::vector<typename Map::node_type> spare_;
};

}  // namespace gpr
