// PageDirectory looked at from outside: who waits for whom, the events that it is told, and all
// that it knows as bytes.
#include <algorithm>
#include <utility>

#include "base/result.h"
#include "mm/page_directory_core.h"
#include "mm/page_event_fields.h"

namespace gpr {

auto fields(Either<DirectoryOptions> auto& x) {
    return std::tie(x.first_probe_ns, x.last_probe_ns, x.collect_window);
}

namespace {

template <class... F>
struct Overloaded : F... {
    using F::operator()...;
};

template <class Map>
auto sorted_keys(const Map& map) {
    std::vector<std::remove_const_t<decltype(map.begin()->first)>> keys;
    for (const auto& [key, value] : map) keys.push_back(key);
    std::sort(keys.begin(), keys.end());
    return keys;
}

}  // namespace

std::vector<ObjectId> PageDirectory::Core::object_ids() const { return sorted_keys(objects); }
std::vector<PageKey> PageDirectory::Core::busy_keys() const { return sorted_keys(busy); }

std::vector<PageWait> PageDirectory::waits() const {
    std::vector<PageWait> waits;
    for (const PageKey& key : core_->busy_keys()) {
        const Core::Busy& b = *core_->busy.find(key);
        PageWait& wait = waits.emplace_back();
        wait.key = key;
        wait.holders = holders(key);
        wait.owing = b.outstanding;
        wait.asked_for = b.recalled_for;
        for (const Core::Wish& w : b.wishes) {
            wait.wishers.push_back({w.who, w.access, w.optional, w.collect != 0, false});
        }
    }
    for (ObjectId id : core_->object_ids()) {
        for (const auto& [from, r] : core_->objects.at(id).held_back) {
            for (uint32_t i = 0; i < r.run.count; ++i) {
                PageWait& wait = waits.emplace_back();
                wait.key = r.run[i];
                wait.holders = holders(wait.key);
                wait.wishers.push_back({{r.age, from, r.tid}, r.access, i >= r.must, false, true});
            }
        }
    }
    return waits;
}

void PageDirectory::watch(std::function<void(const DirectoryEvent&)> watcher) {
    core_->watcher = std::move(watcher);
}

void PageDirectory::apply(DirectoryEvent event) {
    using namespace directory_event;
    const Overloaded act{
        [&](const AddObject& e) { add_object(e.object, e.birth % max_nodes); },
        [&](const EraseObject& e) { erase_object(e.object); },
        [&](const Drop& e) { drop(e.object, e.first, e.count); },
        [&](Told& e) { on_message(e.from, std::move(e.message), e.now_ns); },
        [&](const Collect& e) {
            collect(e.object, e.first, e.count, e.node, e.access, e.cookie, e.now_ns);
        },
        [&](const Hold& e) { hold(e.object); },
        [&](const HoldAll& e) { hold_all(e.object); },
        [&](const CopyObject& e) { copy_object(e.from, e.to); },
        [&](const Release& e) { release(e.object, e.now_ns); },
        [&](const RemoveNode& e) { remove_node(e.node, e.now_ns); },
        [](const Decided&) {},
    };
    std::visit(act, event);
}

bool PageDirectory::is_drained() const { return core_->out.empty(); }

std::vector<std::byte> PageDirectory::save() const {
    GPR_ASSERT(is_drained());
    const Core& c = *core_;
    std::vector<std::byte> bytes;
    CompactWriter out(bytes);
    out.put(c.options);
    out.put(c);
    for (ObjectId id : c.object_ids()) {
        out.number(uint64_t{id} + 1);
        const Core::Object& o = c.objects.at(id);
        out.put(o);
        o.table.save([&](uint64_t n) { out.number(n); });
    }
    out.number(0);
    out.number(c.collects.all.size());
    for (const auto& entry : c.collects.all) out.put(entry);
    out.number(c.anchors.size());
    for (const PageKey& key : sorted_keys(c.anchors)) {
        out.put(key);
        out.put(c.anchors.at(key));
    }
    for (const PageKey& key : c.busy_keys()) {
        out.put(key);
        out.put(*c.busy.find(key));
    }
    return bytes;
}

bool PageDirectory::load(std::span<const std::byte> saved) {
    CompactReader in(saved);
    auto core = std::make_unique<Core>();
    in.get(core->options);
    in.get(*core);
    while (uint64_t number = in.number()) {
        Core::Object& o = core->objects[static_cast<ObjectId>(number - 1)];
        in.get(o);
        if (!o.table.load([&] { return in.number(); })) return false;
    }
    for (uint64_t left = in.number(); left > 0 && in.ok(); --left) {
        std::pair<uint32_t, Core::Collect> entry;
        in.get(entry);
        core->collects.all.insert(entry);
        Core::Object* o = core->object_of(entry.second.object);
        if (o) o->collects.insert(entry.first);
        core->collects.restore(entry.first, o ? o->birth : directory_node);
    }
    for (uint64_t left = in.number(); left > 0 && in.ok(); --left) {
        PageKey key;
        in.get(key);
        in.get(core->anchors[key]);
    }
    while (in.ok() && !in.at_end()) {
        PageKey key;
        in.get(key);
        Core::Busy& b = core->busy.contains(key) ? *core->busy.find(key) : core->busy.add(key);
        b.key = key;
        in.get(b);
    }
    if (!in.ok()) return false;
    core->watcher = std::move(core_->watcher);
    core_ = std::move(core);
    return true;
}

}  // namespace gpr
