#include "monitor/paging/fragment.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "base/uapi/pagemap.h"
#include "base/uapi/userfaultfd.h"

namespace gpr {

namespace {

constexpr uint64_t uffd_features = UFFD_FEATURE_THREAD_ID | UFFD_FEATURE_PAGEFAULT_FLAG_WP |
                                   UFFD_FEATURE_MISSING_SHMEM | UFFD_FEATURE_MOVE |
                                   UFFD_FEATURE_WP_HUGETLBFS_SHMEM;
constexpr uint64_t held = PAGE_IS_PRESENT | PAGE_IS_SWAPPED;  // guard pages, too

const std::byte zero_pages[64 * page_size] = {};

// For helpers that are processes: a signal to the program's process group must not reach them.
const Call leave_group{SYS_setpgid, {0, 0}, 0};
const Call close_all{SYS_close_range, {0, ~0U}, 0};

// For helpers that are threads of the process: the kernel would deliver to them the signals that
// the program's threads block.
Task<void> block_signals(StubThread& helper) {
    auto guard = co_await helper.lock();
    constexpr uint64_t all = ~0ULL;
    helper.scratch().put(0, all);
    uint64_t at = helper.scratch_address().value;
    std::vector<Call> calls{Call{SYS_rt_sigprocmask, {SIG_SETMASK, at, 0, sizeof all}, 0}};
    co_await helper.run_locked(calls);
}

}  // namespace

Fragment::Fragment(Scheduler& scheduler, pid_t pid, pid_t host_pid, RemoteMemory memory,
                   std::unique_ptr<Mailbox> mailbox)
    : scheduler_(scheduler),
      pid_(pid),
      host_pid_(host_pid),
      memory_(std::move(memory)),
      mailbox_(std::move(mailbox)),
      scratch_(scheduler) {}

Result<void> Fragment::adopt_uffd(Fd uffd) {
    uffdio_api api{UFFD_API, uffd_features, 0};
    if (ioctl(uffd.get(), UFFDIO_API, &api) != 0) {
        return fail(errno, "userfaultfd lacks what gpr needs (see 'gpr health')");
    }
    uffd_ = std::move(uffd);
    return {};
}

Task<Result<pid_t>> Fragment::give_birth(StubThread& worker, StubThread& child, Birth birth) {
    Mailbox& box = *mailbox_;
    box.prepare_birth(child.slot());
    add_stub_thread(child);
    // The stack pointer is stack + stack_size; the child pops its slot from the top word.
    clone_args args{};
    args.flags = birth.flags;
    args.stack = Mailbox::slot_address(child.slot()).value;
    args.stack_size = GPR_SLOT_STACK_TOP - 8;
    args.child_tid = birth.child_tid;
    auto lock = co_await worker.lock();
    HostileMemory scratch = worker.scratch();
    uint64_t scratch_at = worker.scratch_address().value;
    if (birth.id != 0) {
        args.set_tid = scratch_at + sizeof args;
        args.set_tid_size = 1;
        scratch.put(sizeof args, birth.id);
    }
    scratch.put(0, args);
    std::vector<Call> calls{Call{SYS_clone3, {scratch_at, sizeof args}, 0}};
    co_await worker.run_locked(calls);
    auto checked = from_kernel(calls[0].result, "cannot start a thread in the program");
    if (!checked) {
        remove_stub_thread(child);
        co_return tl::make_unexpected(checked.error());
    }
    co_return static_cast<pid_t>(*checked);
}

Task<Result<pid_t>> Fragment::give_birth_to_helper(StubThread& worker, StubThread& child,
                                                   uint64_t flags, NextId next_id) {
    constexpr int tries = 300;
    for (int i = 0;; i++) {
        Birth birth{flags, next_id(), 0};
        auto born = co_await give_birth(worker, child, birth);
        bool taken = !born && born.error().code == EEXIST && i < tries;
        if (!taken) co_return born;
    }
}

Task<Result<void>> Fragment::start_helpers(StubThread& worker, int uffd_number, NextId next_id,
                                           bool executor_is_thread) {
    uffd_number_ = uffd_number;
    constexpr int map_flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
    for (auto [at, prot] : {std::pair{GPR_SCRATCH_RW, PROT_READ | PROT_WRITE},
                            std::pair{GPR_SCRATCH_RWX, PROT_READ | PROT_WRITE | PROT_EXEC}}) {
        int64_t mapped = co_await worker.call(SYS_mmap, at, GPR_SCRATCH_SIZE,
                                              static_cast<uint64_t>(prot), map_flags, ~0UL, 0);
        if (mapped != static_cast<int64_t>(at)) co_return fail("cannot map gpr's scratch memory");
        auto registered = register_range({{at}, {at + GPR_SCRATCH_SIZE}});
        if (!registered) co_return registered;
        // Filled and freed again and again, so huge pages never pay.
        co_await worker.call(SYS_madvise, at, GPR_SCRATCH_SIZE, MADV_NOHUGEPAGE);
        co_await worker.call(SYS_madvise, at, GPR_SCRATCH_SIZE, MADV_DONTDUMP);
    }
    auto page_mover_slot = mailbox_->allocate();
    auto executor_slot = mailbox_->allocate();
    if (!page_mover_slot || !executor_slot) co_return fail(EAGAIN, "no slots for helpers");
    page_mover_ = std::make_unique<StubThread>(scheduler_, *mailbox_, *page_mover_slot);
    executor_ = std::make_unique<StubThread>(scheduler_, *mailbox_, *executor_slot);

    // The page mover has its own descriptor table with a copy of the userfaultfd: while it lives, a
    // missing page cannot read as zeros.
    auto page_mover = co_await give_birth_to_helper(worker, *page_mover_, CLONE_VM, next_id);
    if (!page_mover) co_return tl::make_unexpected(page_mover.error());
    page_mover_tid_ = *page_mover;
    auto number = static_cast<uint64_t>(uffd_number);
    std::vector<Call> keep_one{Call{SYS_close_range, {number + 1, ~0U}, 0}};
    if (uffd_number > 0) keep_one.push_back({SYS_close_range, {0, number - 1}, 0});
    if (!executor_is_thread) keep_one.push_back(leave_group);
    co_await page_mover_->run(keep_one);

    uint64_t flags = CLONE_VM;
    if (executor_is_thread) {
        flags |= CLONE_THREAD | CLONE_SIGHAND | CLONE_FS | CLONE_FILES | CLONE_SYSVSEM;
    }
    auto executor = co_await give_birth_to_helper(worker, *executor_, flags, next_id);
    if (!executor) co_return tl::make_unexpected(executor.error());
    executor_tid_ = *executor;
    std::vector<Call> keep_nothing{leave_group, close_all};
    if (!executor_is_thread) co_await executor_->run(keep_nothing);
    if (executor_is_thread) co_await block_signals(*executor_);
    int64_t closed = co_await worker.call(SYS_close, static_cast<uint64_t>(uffd_number));
    (void)closed;
    co_return Result<void>{};
}

Task<Result<void>> Fragment::start_waker(StubThread& worker, NextId next_id, bool is_thread) {
    auto slot = mailbox_->allocate();
    if (!slot) co_return tl::make_unexpected(slot.error());
    waker_ = std::make_unique<StubThread>(scheduler_, *mailbox_, *slot);
    uint64_t flags = CLONE_VM;
    if (is_thread) flags |= CLONE_THREAD | CLONE_SIGHAND | CLONE_FS | CLONE_FILES | CLONE_SYSVSEM;
    auto born = co_await give_birth_to_helper(worker, *waker_, flags, next_id);
    if (!born) co_return tl::make_unexpected(born.error());
    waker_tid_ = *born;
    std::vector<Call> keep_nothing{leave_group, close_all};
    if (!is_thread) co_await waker_->run(keep_nothing);
    if (is_thread) co_await block_signals(*waker_);
    co_return Result<void>{};
}

Result<void> Fragment::register_range(Range range) {
    uffdio_register r{};
    r.range = {range.begin.value, range.size()};
    r.mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP;
    if (ioctl(uffd_.get(), UFFDIO_REGISTER, &r) != 0) {
        return fail(errno, fmt::format("cannot register {:#x}-{:#x} with userfaultfd",
                                       range.begin.value, range.end.value));
    }
    return {};
}

Task<void> Fragment::keep_apart(StubThread& caller, Range range, bool apart) {
    // The kernel splits a mapping of which only a part is registered.
    bool any = false;
    space.for_each(range, [&](const Mapping& m) { any = any || m.registered; });
    space.for_each(range, [&](Mapping& m) {
        if (!apart || !any || m.registered || m.backing != Backing::anonymous) return;
        m.registered = static_cast<bool>(register_range(m.range));
    });
    // MADV_RANDOM has no effect on anonymous memory, but it is a flag of the mapping, so the kernel
    // does not merge it with others.
    co_await caller.call(SYS_madvise, range.begin.value, range.size(),
                         apart ? MADV_RANDOM : MADV_NORMAL);
}

void Fragment::install(Address at, std::span<const std::byte> bytes, bool writable) {
    uint64_t done = 0, most = bytes.size();
    while (done < bytes.size()) {
        uffdio_copy c{};
        c.dst = at.value + done;
        c.src = reinterpret_cast<uint64_t>(bytes.data() + done);
        c.len = std::min(most, bytes.size() - done);
        c.mode = writable ? 0 : UFFDIO_COPY_MODE_WP;
        if (ioctl(uffd_.get(), UFFDIO_COPY, &c) == 0) {
            done += c.len;
            continue;
        }
        if (c.copy > 0) {
            done += static_cast<uint64_t>(c.copy);
            continue;
        }
        if (errno == EAGAIN) continue;
        if (errno == ENOMEM) {  // the waiting threads find out: see on_fault
            lost = true;
            wake({at + done, at + bytes.size()});
            return;
        }
        bool present = errno == EEXIST;
        if (!present && c.len > page_size) {
            // Advice has split the mapping, or a part of it is gone.
            most = page_size;
            continue;
        }
        Range page{at + done, at + done + page_size};
        if (present) {
            settle_present(page, writable);
        } else {
            wake(page);  // the mapping is gone
        }
        done += page_size;
    }
}

void Fragment::install_zero(Address at, uint64_t pages, bool writable) {
    if (!writable) {
        while (pages > 0) {
            uint64_t n = std::min<uint64_t>(pages, sizeof zero_pages / page_size);
            install(at, {zero_pages, n * page_size}, false);
            at = at + n * page_size;
            pages -= n;
        }
        return;
    }
    for (uint64_t most = pages; pages > 0;) {
        uffdio_zeropage z{};
        uint64_t count = std::min(most, pages);
        z.range = {at.value, count * page_size};
        bool made = ioctl(uffd_.get(), UFFDIO_ZEROPAGE, &z) == 0;
        uint64_t done = z.zeropage > 0 ? static_cast<uint64_t>(z.zeropage) / page_size : 0;
        if (made) done = count;
        if (done == 0) {
            if (errno == EAGAIN) continue;
            if (errno == ENOMEM) {  // as in install()
                lost = true;
                wake({at, at + pages * page_size});
                return;
            }
            bool present = errno == EEXIST;
            if (!present && count > 1) {
                most = 1;
                continue;
            }
            const Range page{at, at + page_size};
            if (present) {
                settle_present(page, writable);
            } else {
                wake(page);  // the mapping is gone
            }
            done = 1;
        }
        at = at + done * page_size;
        pages -= done;
    }
}

// The page is present already, and may still be write-protected.
void Fragment::settle_present(Range page, bool writable) {
    if (writable) write_enable(page);
    wake(page);
}

void Fragment::write_protect(Range range) {
    uffdio_writeprotect w{};
    w.range = {range.begin.value, range.size()};
    w.mode = UFFDIO_WRITEPROTECT_MODE_WP;
    while (ioctl(uffd_.get(), UFFDIO_WRITEPROTECT, &w) != 0 && errno == EAGAIN) {
    }
}

void Fragment::write_enable(Range range) {
    uffdio_writeprotect w{};
    w.range = {range.begin.value, range.size()};
    w.mode = 0;
    while (ioctl(uffd_.get(), UFFDIO_WRITEPROTECT, &w) != 0 && errno == EAGAIN) {
    }
}

void Fragment::wake(Range range) {
    uffdio_range r{range.begin.value, range.size()};
    ioctl(uffd_.get(), UFFDIO_WAKE, &r);
}

void Fragment::poison(Address at) {
    // The kernel does not poison a write-protected page.
    uffdio_writeprotect unmark{{at.value, page_size}, UFFDIO_WRITEPROTECT_MODE_DONTWAKE};
    ioctl(uffd_.get(), UFFDIO_WRITEPROTECT, &unmark);
    uffdio_poison p{};
    p.range = {at.value, page_size};
    while (ioctl(uffd_.get(), UFFDIO_POISON, &p) != 0 && errno == EAGAIN) {
    }
    write_enable({at, at + page_size});  // in case the page is present and only write-protected
}

// PAGEMAP_SCAN: looking at each page would take a microsecond for each; this skips untouched ranges
// at no cost.
std::optional<Fragment::Touched> Fragment::scan(Range range, size_t most, uint64_t any_of,
                                                uint64_t none_of) {
    if (!page_table_) {
        page_table_ =
            Fd(open(fmt::format("/proc/{}/pagemap", host_pid_).c_str(), O_RDONLY | O_CLOEXEC));
    }
    std::vector<page_region> regions(most);
    pm_scan_arg scan{};
    scan.size = sizeof scan;
    scan.start = range.begin.value;
    scan.end = range.end.value;
    scan.vec = reinterpret_cast<uint64_t>(regions.data());
    scan.vec_len = most;
    scan.category_mask = scan.category_inverted = none_of;
    scan.category_anyof_mask = scan.return_mask = any_of;
    int found = ioctl(page_table_.get(), PAGEMAP_SCAN, &scan);
    if (found < 0) return std::nullopt;
    Touched touched{{}, range.end};
    for (size_t i = 0; i < static_cast<size_t>(found); i++) {
        touched.ranges.push_back({{regions[i].start}, {regions[i].end}});
    }
    // Not walk_end, which may be earlier: where the kernel has emptied its internal buffer.
    if (touched.ranges.size() == most) touched.end = touched.ranges.back().end;
    return touched;
}

Fragment::Touched Fragment::touched(Range range, size_t most) {
    if (most == 0) return {{}, range.begin};
    auto found = scan(range, most, held, PAGE_IS_PFNZERO | PAGE_IS_GUARD);
    if (!found) found = scan(range, most, held, PAGE_IS_PFNZERO);  // a kernel without guard pages
    return found ? *found : Touched{{range}, range.end};           // unknown: perhaps all of them
}

Address Fragment::first_present(Range range) {
    auto found = scan(range, 1, held, 0);
    if (!found) return range.begin;
    return found->ranges.empty() ? range.end : found->ranges.front().begin;
}

std::optional<std::vector<Range>> Fragment::scan_all(Range range, uint64_t any_of,
                                                     uint64_t none_of) {
    constexpr size_t most_at_once = 64;
    std::vector<Range> all;
    while (!range.empty()) {
        auto found = scan(range, most_at_once, any_of, none_of);
        if (!found) return std::nullopt;
        all.insert(all.end(), found->ranges.begin(), found->ranges.end());
        range.begin = found->end;
    }
    return all;
}

std::optional<std::vector<Range>> Fragment::guards(Range range) {
    return scan_all(range, PAGE_IS_GUARD, 0);
}

std::vector<Range> Fragment::private_copies(Range range) {
    auto copies = scan_all(range, held, PAGE_IS_FILE);
    return copies ? *copies : std::vector<Range>{range};
}

Fragment::Taken Fragment::peek(Address at, uint64_t pages) const {
    Taken taken(pages);
    taken.read(memory_, at, 0, pages);
    return taken;
}

void Fragment::Taken::read(const RemoteMemory& memory, Address at, uint64_t first, uint64_t pages) {
    std::byte* to = bytes.data() + first * page_size;
    uint64_t i = 0;
    while (i < pages) {
        size_t got = memory.read(at + i * page_size, to + i * page_size, (pages - i) * page_size);
        uint64_t whole = got / page_size;
        for (uint64_t k = 0; k < whole; k++) results[first + i + k] = 1;
        i += whole;
        if (i < pages) {
            std::memset(to + i * page_size, 0, page_size);
            i++;
        }
    }
}

void Fragment::add_stub_thread(StubThread& thread) {
    if (by_slot_.size() <= thread.slot()) by_slot_.resize(thread.slot() + 1, nullptr);
    by_slot_[thread.slot()] = &thread;
}

void Fragment::remove_stub_thread(const StubThread& thread) {
    if (thread.slot() < by_slot_.size()) by_slot_[thread.slot()] = nullptr;
}

void Fragment::retire(const StubThread& thread) {
    if (&thread.mailbox() != mailbox_.get()) return;  // a thread from before an exec
    if (stub_thread(thread.slot()) == &thread) remove_stub_thread(thread);
    mailbox_->release(thread.slot());
}

void Fragment::on_exec(bool unwatched) {
    for (StubThread* thread : by_slot_) {
        if (thread) thread->on_death();
    }
    if (unwatched) uffd_ = Fd();
}

StubThread* Fragment::stub_thread(Mailbox::SlotIndex slot) {
    return slot < by_slot_.size() ? by_slot_[slot] : nullptr;
}

}  // namespace gpr
