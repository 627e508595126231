// How a fragment takes pages out of the program's memory: it moves them to a scratch area.
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <map>

#include "base/uapi/userfaultfd.h"
#include "monitor/paging/fragment.h"

namespace gpr {

namespace {

constexpr uint64_t scratch_pages = GPR_SCRATCH_SIZE / page_size;

// The page mover must be locked. Sets move.move to the number of bytes moved if not all were.
Task<int64_t> make_move(StubThread& page_mover, int uffd_number, uffdio_move& move) {
    page_mover.scratch().put(0, move);
    std::vector<Call> calls{
        Call{SYS_ioctl,
             {static_cast<uint64_t>(uffd_number), UFFDIO_MOVE, page_mover.scratch_address().value},
             0}};
    co_await page_mover.run_locked(calls);
    if (calls[0].result == 0) co_return 0;
    auto moved = page_mover.scratch().get<uffdio_move>().field(&uffdio_move::move);
    move.move = moved.at_most(static_cast<int64_t>(move.len));
    co_return calls[0].result;
}

// Merges into the pages of `all` from `first` on those that could not be moved. failed: -EBUSY for
// those that stay; in_place: those that were read and removed in place.
void put_in_place(Fragment::Taken& all, uint64_t first, const std::vector<int>& failed,
                  const std::map<uint64_t, Fragment::Taken>& in_place) {
    for (uint64_t k = 0; k < failed.size(); k++) {
        if (failed[k] == -EBUSY) all.results[first + k] = -EBUSY;
    }
    for (const auto& [k, page] : in_place) {
        all.results[first + k] = page.results[0];
        std::ranges::copy(page.bytes, all.bytes.data() + (first + k) * page_size);
    }
}

}  // namespace

// The page mover must be locked. Write-protects first, because the mapping may become writable any
// time.
Task<Fragment::Taken> Fragment::take_in_place(Address at, uint64_t pages) {
    Range range{at, at + pages * page_size};
    write_protect(range);
    Taken taken = peek(at, pages);
    std::vector<Call> calls{Call{SYS_madvise, {at.value, range.size(), MADV_DONTNEED}, 0}};
    co_await page_mover_->run_locked(calls);
    co_return taken;
}

Task<Fragment::Taken> Fragment::take(Address at, uint64_t pages, int prot, bool quiet) {
    // UFFDIO_MOVE refuses read-only mappings and pages that a fork shares. The executor could break
    // that sharing by a write, but not for pages that are write-protected.
    if (quiet || !(prot & PROT_WRITE)) {
        auto lock = co_await page_mover_->lock();
        co_return co_await take_in_place(at, pages);
    }
    Taken all(pages);
    auto guard = co_await scratch_.lock();
    bool executable = (prot & PROT_EXEC) != 0;
    uint64_t& used = scratch_used_[executable];
    for (uint64_t first = 0; first < pages; first += scratch_pages) {
        uint64_t count = std::min(pages - first, scratch_pages);
        auto lock = co_await page_mover_->lock();
        uint64_t scratch = executable ? GPR_SCRATCH_RWX : GPR_SCRATCH_RW;
        // Emptied only when it is full, so that a take usually waits for the page mover only once.
        if (used + count > scratch_pages) {
            std::vector<Call> empty{
                Call{SYS_madvise, {scratch, used * page_size, MADV_DONTNEED}, 0}};
            co_await page_mover_->run_locked(empty);
            used = 0;
        }
        scratch += used * page_size;
        used += count;
        std::vector<int> failed(count, 1);
        std::map<uint64_t, Taken> in_place;
        uint64_t i = 0;
        int busy_tries = 0;
        while (i < count) {
            uffdio_move move{};
            move.dst = scratch + i * page_size;
            move.src = at.value + (first + i) * page_size;
            move.len = (count - i) * page_size;
            move.mode = UFFDIO_MOVE_MODE_DONTWAKE | UFFDIO_MOVE_MODE_ALLOW_SRC_HOLES;
            int64_t result = co_await make_move(*page_mover_, uffd_number_, move);
            if (result == 0) break;
            if (move.move > 0) {
                i += static_cast<uint64_t>(move.move) / page_size;
                busy_tries = 0;
                continue;
            }
            if (result == -EAGAIN) continue;
            if (result == -EBUSY && busy_tries++ < 2) {
                // Perhaps shared by a fork: a write makes a private copy. Lift the write protection
                // first (mremap leaves everything protected), or the write's fault would be
                // reported to us while we wait for the write.
                write_enable({{move.src}, {move.src + page_size}});
                std::vector<Call> touch{
                    Call{SYS_madvise, {move.src, page_size, MADV_POPULATE_WRITE}, 0}};
                lock.release();
                co_await executor_->run(touch);
                lock = co_await page_mover_->lock();
                continue;
            }
            if (result == -EBUSY) {
                failed[i] = -EBUSY;
            } else {  // the mapping's protection has changed meanwhile, or the mapping is gone
                in_place[i] = co_await take_in_place({move.src}, 1);
            }
            i++;
            busy_tries = 0;
        }
        all.read(memory_, {scratch}, first, count);
        put_in_place(all, first, failed, in_place);
    }
    co_return all;
}

}  // namespace gpr
