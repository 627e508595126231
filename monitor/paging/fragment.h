// One process on one node: its memory, its mailbox, its userfaultfd and its helpers.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/raw_bytes.h"
#include "mm/address_space.h"
#include "monitor/tracee/mailbox.h"
#include "monitor/tracee/remote_memory_raw.h"
#include "monitor/tracee/stub_thread.h"

namespace gpr {

// Shared, because work on its pages may outlive the process.
class Fragment : public std::enable_shared_from_this<Fragment> {
public:
    // pid: as the program sees it; host_pid: as this supervisor sees it.
    Fragment(Scheduler& scheduler, pid_t pid, pid_t host_pid, RemoteMemory memory,
             std::unique_ptr<Mailbox> mailbox);

    // --- set-up, in the order of use -------------------------------------------------------------
    // Takes over the process's userfaultfd.
    Result<void> adopt_uffd(Fd uffd);
    // Creates a thread or process that shares this memory and begins in the stub, on the child's
    // slot; `worker` is a thread of the process in the stub. id: the pid or tid for it, 0 for any.
    // Returns the id as the program sees it.
    struct Birth {
        uint64_t flags = 0;  // CLONE_*
        pid_t id = 0;
        uint64_t child_tid = 0;  // for CLONE_CHILD_CLEARTID and the like
    };
    Task<Result<pid_t>> give_birth(StubThread& worker, StubThread& child, Birth birth);
    // Proposes ids for helpers until a free one is found; 0 for any.
    using NextId = std::function<pid_t()>;
    Task<Result<pid_t>> give_birth_to_helper(StubThread& worker, StubThread& child, uint64_t flags,
                                             NextId next_id);
    // Maps the scratch areas and starts page mover and executor, by calls made in `worker`.
    // uffd_number: of the userfaultfd in the process's descriptor table.
    Task<Result<void>> start_helpers(StubThread& worker, int uffd_number, NextId next_id,
                                     bool executor_is_thread);

    // Starts a third helper, for processes with threads on several nodes: the waker makes futex
    // wakes, which may wait for a page. The executor must not wait for one, or no mapping could
    // change meanwhile.
    Task<Result<void>> start_waker(StubThread& worker, NextId next_id, bool is_thread);

    // To be called before (apart = true) and after an mremap that moves a mapping. The kernel would
    // merge the moved mapping with its neighbours and then drop the userfaultfd registration of
    // them all, so missing pages would read as zeros. While `apart`, the mappings differ and are
    // not merged. It also makes the range one mapping to the kernel, as mremap requires, where it
    // was registered in part. caller: any thread of the process.
    Task<void> keep_apart(StubThread& caller, Range range, bool apart);

    // --- pages: µs each, none of these block ----------------------------------------------------
    // Ranges are whole pages inside one mapping.
    Result<void> register_range(Range range);
    // Pages that are present stay as they are. Wakes the waiting threads.
    void install(Address at, std::span<const std::byte> bytes, bool writable);
    void install_zero(Address at, uint64_t pages, bool writable);
    void write_protect(Range range);
    void write_enable(Range range);  // also wakes
    void wake(Range range);
    // Makes every touch of the page raise SIGBUS, and system calls fail with EFAULT: for a process
    // that has lost its memory and must not continue with zeros. Wakes the waiting threads.
    void poison(Address at);
    // Moves pages out of [at, at + pages) and returns their bytes.
    struct Taken {
        Taken() = default;
        explicit Taken(uint64_t pages) : bytes(pages * page_size), results(pages) {}
        // Copies `pages` pages from `at` on; they become those from `first` on.
        void read(const RemoteMemory& memory, Address at, uint64_t first, uint64_t pages);

        RawBytes bytes;            // 4096 for each page, zeros where nothing was
        std::vector<int> results;  // 1 taken, 0 was missing, -EBUSY pinned
    };
    // prot: of the mapping, when the take was decided. quiet: the pages are write-protected
    // already.
    Task<Taken> take(Address at, uint64_t pages, int prot, bool quiet);
    // The same, but the pages stay.
    Taken peek(Address at, uint64_t pages) const;
    // The pages of private memory that the program has touched and that may not be zero: up to
    // `most` ranges in order, and the address up to which we looked.
    struct Touched {
        std::vector<Range> ranges;
        Address end;
    };
    Touched touched(Range range, size_t most);
    // The first page that is present, zero or not; range.end if there is none.
    Address first_present(Range range);
    // Guard pages (MADV_GUARD_INSTALL); nullopt if this kernel cannot tell them apart, or has none.
    std::optional<std::vector<Range>> guards(Range range);
    // The pages of a private file mapping that no longer show the file; of a copy of one in
    // anonymous memory, those that are present, zero or not.
    std::vector<Range> private_copies(Range range);

    // --- the parts ------------------------------------------------------------------------------
    [[nodiscard]] pid_t pid() const { return pid_; }
    [[nodiscard]] pid_t host_pid() const { return host_pid_; }
    [[nodiscard]] RemoteMemory& memory() { return memory_; }
    [[nodiscard]] Mailbox& mailbox() { return *mailbox_; }
    [[nodiscard]] int uffd() const { return uffd_.get(); }
    [[nodiscard]] StubThread& executor() { return *executor_; }
    [[nodiscard]] StubThread& page_mover() { return *page_mover_; }
    [[nodiscard]] bool has_helpers() const { return executor_ && page_mover_; }
    [[nodiscard]] StubThread* waker() { return waker_.get(); }
    [[nodiscard]] pid_t waker_tid() const { return waker_tid_; }
    [[nodiscard]] pid_t page_mover_tid() const { return page_mover_tid_; }
    [[nodiscard]] pid_t executor_tid() const { return executor_tid_; }

    // All stub threads of this process by slot, for the listener's PARK notifications.
    void add_stub_thread(StubThread& thread);
    void remove_stub_thread(const StubThread& thread);
    // Frees the slot of a thread that is dead and that nobody waits for any more.
    void retire(const StubThread& thread);
    [[nodiscard]] StubThread* stub_thread(Mailbox::SlotIndex slot);
    // After exec no thread is in the stub any more; whoever waits for one must stop. unwatched: the
    // new memory is not registered either, and all of it is here.
    void on_exec(bool unwatched = false);

    AddressSpace space;
    bool lost = false;  // its memory is lost: touching it raises SIGBUS, see poison()

private:
    // The pages that are in one of the categories `any_of` and in none of `none_of` (PAGE_IS_*).
    std::optional<Touched> scan(Range range, size_t most, uint64_t any_of, uint64_t none_of);
    // The same without a limit on the number of ranges.
    std::optional<std::vector<Range>> scan_all(Range range, uint64_t any_of, uint64_t none_of);
    Task<Taken> take_in_place(Address at, uint64_t pages);
    void settle_present(Range page, bool writable);

    Scheduler& scheduler_;
    pid_t pid_;
    pid_t host_pid_;
    RemoteMemory memory_;
    std::unique_ptr<Mailbox> mailbox_;
    Fd uffd_;
    Fd page_table_;         // /proc/pid/pagemap
    int uffd_number_ = -1;  // in the page mover's descriptor table
    std::unique_ptr<StubThread> page_mover_;
    std::unique_ptr<StubThread> executor_;
    std::unique_ptr<StubThread> waker_;
    pid_t page_mover_tid_ = 0;
    pid_t executor_tid_ = 0;
    pid_t waker_tid_ = 0;
    AsyncMutex scratch_;
    uint64_t scratch_used_[2] = {};  // pages in use in the two scratch areas, RW and RWX
    std::vector<StubThread*> by_slot_;
};

}  // namespace gpr
