#include "monitor/paging/layout_parts.h"

#include "monitor/paging/page_wire.h"

namespace gpr {

namespace {
// Each takes at most 72 bytes, and a message at most 1 MiB.
constexpr size_t most_in_a_part = 8000;
// vm.max_map_count is 65,530 by default; databases ask administrators to raise it.
constexpr size_t most_parts = 512;
// For all processes that have yet to begin at the acceptor: eight of the largest kind, or thousands
// of ordinary ones with one part each.
constexpr size_t most_of_all = 8 * most_parts;
}  // namespace

void LayoutSender::add(const Mapping& mapping, uint64_t object_pages) {
    mappings_.push_back({mapping, object_pages});
    finish_if_full();
}

void LayoutSender::add_absent(Range range) {
    absent_.push_back(range);
    finish_if_full();
}

void LayoutSender::add_copy(ObjectId from, ObjectId to) {
    copies_.emplace_back(from, to);
    finish_if_full();
}

void LayoutSender::finish_if_full() {
    if (mappings_.size() + absent_.size() + copies_.size() == most_in_a_part) finish();
}

void LayoutSender::finish() {
    if (mappings_.empty() && absent_.empty() && copies_.empty()) return;
    FrameBuilder frame;
    auto layout = frame.session().initLayout();
    layout.setPid(pid_);
    auto views = layout.initMappings(static_cast<unsigned>(mappings_.size()));
    for (unsigned i = 0; i < views.size(); i++) {
        mapping_to_wire(mappings_[i].mapping, mappings_[i].object_pages, reader_, views[i]);
    }
    auto gone = layout.initAbsent(static_cast<unsigned>(absent_.size()));
    for (unsigned i = 0; i < gone.size(); i++) {
        gone[i].setBegin(absent_[i].begin.value);
        gone[i].setEnd(absent_[i].end.value);
    }
    auto objects = layout.initCopies(static_cast<unsigned>(2 * copies_.size()));
    for (unsigned i = 0; i < copies_.size(); i++) {
        objects.set(2 * i, copies_[i].first);
        objects.set(2 * i + 1, copies_[i].second);
    }
    link_.send(frame, Priority::urgent);
    mappings_.clear();
    absent_.clear();
    copies_.clear();
}

Result<void> LayoutParts::add(Frame frame) {
    pid_t pid = frame->session().getLayout().getPid();
    if (all_ == most_of_all) return fail("home describes more processes than can begin at once");
    auto& parts = parts_[pid];
    if (parts.size() == most_parts) {
        return fail(fmt::format("home describes more memory of process {} than it can have", pid));
    }
    parts.push_back(std::move(frame));
    all_++;
    return {};
}

std::vector<LayoutParts::Frame> LayoutParts::take(pid_t pid) {
    auto node = parts_.extract(pid);
    if (node.empty()) return {};
    all_ -= node.mapped().size();
    return std::move(node.mapped());
}

}  // namespace gpr
