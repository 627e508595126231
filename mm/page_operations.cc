#include "mm/page_operations.h"

#include <utility>

#include "base/result.h"

namespace gpr {

void PageOperations::install(BusyPage& b, Presence presence, PageContent content) {
    auto& install = agent_.out.extend_action<Install>(
        b.key, [&](const Install& i) { return i.presence == presence; },
        [&] {
            runs_[next_] = {b.key.object, b.key.index, 0};
            return Install{next_++, {}, presence, false, {}};
        });
    install.wake |= !b.waiters.empty();
    install.contents.push_back(std::move(content));
    ++runs_[install.id].count;
    b.operation = BusyPage::Operation::install;
    b.operation_id = install.id;
    b.dropped = false;
}

void PageOperations::unprotect(BusyPage& b) {
    auto& action = agent_.out.extend_action<Unprotect>(
        b.key, [](const Unprotect&) { return true; },
        [&] {
            runs_[next_] = {b.key.object, b.key.index, 0};
            return Unprotect{next_++, {}, false};
        });
    action.wake |= !b.waiters.empty();
    ++runs_[action.id].count;
    b.operation = BusyPage::Operation::install;
    b.operation_id = action.id;
    b.dropped = false;
}

void PageOperations::take(BusyPage& b, Presence had, Presence leave, bool want_data) {
    auto& take = agent_.out.extend_action<Take>(
        b.key,
        [&](const Take& t) { return t.had == had && t.leave == leave && t.want_data == want_data; },
        [&] {
            runs_[next_] = {b.key.object, b.key.index, 0};
            return Take{next_++, {}, had, leave, want_data};
        });
    ++runs_[take.id].count;
    b.operation = BusyPage::Operation::take;
    b.operation_id = take.id;
    b.dropped = false;
}

PageRun PageOperations::finish(uint64_t id) {
    auto it = runs_.find(id);
    GPR_ASSERT(it != runs_.end());
    const PageRun run = it->second;
    runs_.erase(it);
    return run;
}

}  // namespace gpr
