// How PageDirectory copies its state of an object, for a fork in place.
#include <algorithm>

#include "base/result.h"
#include "mm/page_directory_core.h"

namespace gpr {

bool PageDirectory::is_quiet(const ObjectTest& asked) const {
    const Core& c = *core_;
    return std::none_of(c.collects.all.begin(), c.collects.all.end(),
                        [&](const auto& entry) { return asked(entry.second.object); }) &&
           std::none_of(c.busy.begin(), c.busy.end(),
                        [&](const auto& entry) { return asked(entry.first.object); });
}

void PageDirectory::copy_object(ObjectId from, ObjectId to) {
    Core& c = *core_;
    if (c.watcher) c.watcher(directory_event::CopyObject{from, to});
    const Core::Object* original = c.object_of(from);
    if (!original) return;
    GPR_ASSERT(is_quiet(only(from)) && !c.objects.contains(to));
    Core::Object& copy = c.objects[to];
    copy.birth = original->birth;
    copy.orphan = original->orphan;
    copy.trend = original->trend;
    copy.table = original->table.copy();
    // A device has pinned the page of the original only: the kernel has made a copy of it.
    for (const auto& [key, anchor] : c.anchors) {
        if (key.object != from) continue;
        Core::Page p = c.load(copy, key.index);
        p.anchored = false;
        c.store(copy, key.index, p);
    }
}

}  // namespace gpr
