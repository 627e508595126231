#include "monitor/paging/traffic.h"

#include <algorithm>
#include <variant>
#include <vector>

namespace gpr::paging {

namespace {

uint64_t with_content(const std::vector<PageContent>& contents) {
    return static_cast<uint64_t>(std::ranges::count_if(
        contents, [](const PageContent& each) { return each.kind == ContentKind::data; }));
}

}  // namespace

void Traffic::note(const Message& message) {
    if (const auto* grant = std::get_if<Grant>(&message.body)) {
        const uint64_t pages = with_content(grant->contents);
        if (pages == 0) return;
        objects_[grant->run.object].pages_in += pages;
        if (grant->tid != 0) threads_[grant->tid].pages += pages;
    } else if (const auto* given = std::get_if<Surrender>(&message.body)) {
        const uint64_t pages = with_content(given->contents);
        if (pages != 0) objects_[given->run.object].pages_out += pages;
    } else if (const auto* pushed = std::get_if<Push>(&message.body)) {
        const uint64_t pages = with_content(pushed->contents);
        if (pages != 0) objects_[pushed->run.object].pages_out += pages;
    }
}

ThreadTraffic Traffic::of_thread(Tid tid) const {
    const auto found = threads_.find(tid);
    return found == threads_.end() ? ThreadTraffic{} : found->second;
}

ObjectTraffic Traffic::of_object(ObjectId object) const {
    const auto found = objects_.find(object);
    return found == objects_.end() ? ObjectTraffic{} : found->second;
}

}  // namespace gpr::paging
