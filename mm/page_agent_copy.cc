// How PageAgent copies its state of an object, for a fork in place.
#include <algorithm>
#include <utility>

#include "base/result.h"
#include "mm/page_agent_core.h"

namespace gpr {

bool PageAgent::is_quiet(const ObjectTest& asked) const {
    return std::none_of(core_->busy.begin(), core_->busy.end(), [&](const auto& entry) {
        const Core::Busy& b = entry.second;
        return (b.operation != Core::Operation::none || b.recall || !b.grants.empty()) &&
               asked(entry.first.object);
    });
}

// Waiters and holds stay with the original. A page that was given up unasked can still be recalled,
// in the original and in the copy.
void PageAgent::copy_object(ObjectId from, ObjectId to) {
    Core& c = *core_;
    const Core::Object* original = c.object_of(from);
    if (!original) return;
    GPR_ASSERT(!c.objects.contains(to));
    Core::Object& copy = c.objects[to];
    copy.birth = original->birth;
    copy.table = original->table.copy();
    std::vector<std::pair<uint64_t, PageContent>> withdrawn;
    for (const auto& [key, b] : c.busy) {
        if (key.object != from) continue;
        copy.table.set(key.index, copy.table.get(key.index) & ~busy_bit);
        if (b.withdrawn) withdrawn.emplace_back(key.index, *b.withdrawn);
    }
    for (auto& [index, content] : withdrawn) {
        c.make_busy(copy, {to, index}).withdrawn = std::move(content);
        ++c.withdrawn_pages;
    }
}

std::vector<PageSpan> PageAgent::shared_pages(ObjectId object, uint64_t first,
                                              uint64_t count) const {
    std::vector<PageSpan> spans;
    Core::Object* o = core_->object_of(object);
    if (!o) return spans;
    o->table.for_each(first, count, [&](uint64_t index, uint64_t&) {
        if (core_->state(*o, index).presence != Presence::shared) return;
        const bool joins = !spans.empty() && spans.back().first + spans.back().count == index;
        if (joins) {
            ++spans.back().count;
        } else {
            spans.push_back({index, 1});
        }
    });
    return spans;
}

}  // namespace gpr
