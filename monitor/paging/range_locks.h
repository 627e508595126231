// Range locks (as in the kernel, but for one process on one node): pages are moved by their
// addresses, while mremap, munmap and the like change what is at an address. Who moves pages shares
// a range; who changes it has it alone. Otherwise pages would be taken from a place that they have
// left, which reads as zeros, or from a mapping that came after theirs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/address.h"
#include "base/task.h"
#include "mm/page_protocol.h"
#include "monitor/paging/part.h"

namespace gpr::paging {

class RangeLocks {
public:
    explicit RangeLocks(Core& core) : core_(core) {}
    RangeLocks(const RangeLocks&) = delete;
    RangeLocks& operator=(const RangeLocks&) = delete;

    class Guard {
    public:
        Guard() = default;
        Guard(RangeLocks* locks, uint64_t id) : locks_(locks), id_(id) {}
        Guard(Guard&& o) noexcept;
        Guard& operator=(Guard&& o) noexcept;
        ~Guard() { release(); }
        void release();

    private:
        RangeLocks* locks_ = nullptr;
        uint64_t id_ = 0;
    };

    // For a change of mappings, or of their content (MADV_DONTNEED), by this kernel: returns when
    // no pages in the ranges are on the move, and none will be until the guard is gone. To be held
    // until our list of mappings agrees with the kernel. The caller orders the changes themselves,
    // and must not wait for pages in the ranges meanwhile.
    Task<Guard> lock(std::shared_ptr<Fragment> fragment, std::vector<Range> ranges);
    Task<Guard> lock(std::shared_ptr<Fragment> fragment, Range range);

    // For moving the pages of a piece, which must not be locked. None of these waits.
    [[nodiscard]] Guard share(const Piece& piece);
    [[nodiscard]] bool is_locked(const Piece& piece) const;
    [[nodiscard]] bool is_locked(const PageRun& run) const;  // a part of it

private:
    struct Held {
        std::shared_ptr<Fragment> fragment;
        std::vector<Range> ranges;
        bool alone;
    };

    [[nodiscard]] bool is_held(const Fragment& fragment, const std::vector<Range>& ranges,
                               bool alone) const;

    Core& core_;
    std::map<uint64_t, Held> held_;
    uint64_t next_id_ = 1;
};

}  // namespace gpr::paging
