// The mappings of all processes here that show an object of shared memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/address.h"
#include "base/task.h"
#include "mm/address_space.h"
#include "mm/page_protocol.h"
#include "monitor/paging/core.h"
#include "monitor/paging/part.h"

namespace gpr::paging {

class SharedViews {
public:
    SharedViews(Core& core, Pager& pager) : core_(core), pager_(pager) {}

    // Visits the part of the run that each mapping shows, on this node.
    template <class Visit>
    void for_each(const PageRun& run, Visit visit);
    void protect(const PageRun& run);
    void enable(const PageRun& run);
    void wake(const PageRun& run);
    // Where the mapping shows pages that are here: to write is to ask. What is not here is marked
    // when it comes, so that a mapping costs what is used of it.
    void protect_present(Fragment& fragment, const Mapping& mapping) const;

    // Node 0, while the kernel changes what mappings of shared memory a process has, until our list
    // of them says the same: what they show in between may be anything.
    class Change {
    public:
        explicit Change(SharedViews* views) : views_(views) {
            if (views_) views_->changing_++;
        }
        ~Change() {
            if (views_) views_->changing_--;
        }
        Change(const Change&) = delete;
        Change& operator=(const Change&) = delete;

    private:
        SharedViews* views_;
    };
    // Of what lies in the ranges.
    [[nodiscard]] Change change(const AddressSpace& space, std::span<const Range> ranges);
    [[nodiscard]] bool is_changing() const { return changing_ > 0; }
    Task<void> settled();

private:
    Core& core_;
    Pager& pager_;
    int changing_ = 0;
};

template <class Visit>
void SharedViews::for_each(const PageRun& run, Visit visit) {
    uint64_t end = run.first + run.count;
    for (auto& [fragment, watch] : core_.fragments) {
        fragment->space.shared_views(run.object, [&](const Mapping& m) {
            uint64_t m_end = m.object_page + m.range.size() / page_size;
            if (m.object_page >= end || m_end <= run.first) return;
            uint64_t first = std::max(m.object_page, run.first);
            uint64_t last = std::min(m_end, end);
            Address at = m.range.begin + (first - m.object_page) * page_size;
            visit(*fragment, m, Range{at, at + (last - first) * page_size}, first);
        });
    }
}

}  // namespace gpr::paging
