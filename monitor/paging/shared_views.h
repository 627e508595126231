// The mappings, of all processes on this node, that show an object of shared memory.
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

    // Calls `visit` for the part of the run that each mapping on this node shows.
    template <class Visit>
    void for_each(const PageRun& run, Visit visit);
    void protect(const PageRun& run);
    void enable(const PageRun& run);
    void wake(const PageRun& run);
    // Write-protects the present pages of a mapping, so that writing them faults. Missing pages are
    // protected when they arrive, so a mapping costs only what is used of it.
    void protect_present(Fragment& fragment, const Mapping& mapping) const;

    // Node 0: exists while the kernel changes a process's mappings of shared memory, until our list
    // agrees with it. In between, reads through these mappings cannot be trusted.
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
    // For the shared mappings in these ranges.
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
