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

// Shared, because work on its pages may outlast the process.
class Fragment : public std::enable_shared_from_this<Fragment> {
public:
    // pid: what the program calls it; host_pid: the same process for this supervisor.
    Fragment(Scheduler& scheduler, pid_t pid, pid_t host_pid, RemoteMemory memory,
             std::unique_ptr<Mailbox> mailbox);

    // --- set-up, in this order -----------------------------------------------------------------
    // Takes the userfaultfd that lies in the process's table as `number`.
    Result<void> adopt_uffd(Fd uffd);
    // Maps the scratch areas and starts the two helpers, all by calls made in `worker`, a thread
    // of the process that is in the stub. next_id: what clone3 shall call them.
    // A new thread or process that shares this memory begins in the stub, on the child's slot.
    // id: what clone3 shall call it, 0 for any. Gives the id as the program sees it.
    struct Birth {
        uint64_t flags = 0;  // CLONE_*
        pid_t id = 0;
        uint64_t child_tid = 0;  // the address, where the flags ask to clear it
    };
    Task<Result<pid_t>> give_birth(StubThread& worker, StubThread& child, Birth birth);
    // Proposes ids for helpers until a free one is found; 0 for any.
    using NextId = std::function<pid_t()>;
    Task<Result<pid_t>> give_birth_to_helper(StubThread& worker, StubThread& child, uint64_t flags,
                                             NextId next_id);
    Task<Result<void>> start_helpers(StubThread& worker, int uffd_number, NextId next_id,
                                     bool executor_is_thread);

    // A third helper, where threads of the process live on several nodes: it does their futex
    // wakes, which may wait for a page. The executor must not, or no mapping could change then.
    Task<Result<void>> start_waker(StubThread& worker, NextId next_id, bool is_thread);

    // Around an mremap that moves. The kernel would join the mapping at its new place with those
    // beside it, and then drop the registration of them all: what is missing in them would be
    // zeros. Until `apart` is taken back they are not alike. mremap also wants one mapping, which
    // what is registered in part is not. caller: any thread of the process.
    Task<void> keep_apart(StubThread& caller, Range range, bool apart);

    // --- pages: µs each, none of these block ----------------------------------------------------
    // Ranges are whole pages inside one mapping.
    Result<void> register_range(Range range);
    // Pages that are present already stay as they are. Wakes who waits.
    void install(Address at, std::span<const std::byte> bytes, bool writable);
    void install_zero(Address at, uint64_t pages, bool writable);
    void write_protect(Range range);
    void write_enable(Range range);  // and wakes
    void wake(Range range);
    // Whoever touches the page dies of SIGBUS, or its system call fails with EFAULT: for a process
    // that has lost its memory and must not go on with zeros. Wakes who waits.
    void poison(Address at);
    // Removes pages from [at, at + pages) and gives their bytes: data[i] is empty for a page that
    // was not there. -EBUSY in `errors` for one that is pinned.
    struct Taken {
        RawBytes bytes;            // 4096 for each page, zeros where nothing was
        std::vector<int> results;  // 1 taken, 0 was missing, -EBUSY pinned
    };
    // prot: what the mapping had when this was decided. quiet: the pages are write-protected.
    Task<Taken> take(Address at, uint64_t pages, int prot, bool quiet);
    // Reads without removing: pages that are missing are marked so.
    Taken peek(Address at, uint64_t pages) const;
    // Which pages of private memory the program has touched and may not be zero: at most so many
    // ranges of them, in order, and how far we looked.
    struct Touched {
        std::vector<Range> ranges;
        Address end;
    };
    Touched touched(Range range, size_t most);
    // The first page that is here, zero or not; the end if none is.
    Address first_present(Range range);
    // Guard pages (MADV_GUARD_INSTALL); nothing if this kernel cannot tell, or has none.
    std::optional<std::vector<Range>> guards(Range range);
    // Of a private mapping of a file: what is not the file's any more.
    std::vector<Range> private_copies(Range range);

    // --- the parts ------------------------------------------------------------------------------
    [[nodiscard]] pid_t pid() const { return pid_; }
    [[nodiscard]] pid_t host_pid() const { return host_pid_; }
    [[nodiscard]] RemoteMemory& memory() { return memory_; }
    [[nodiscard]] Mailbox& mailbox() { return *mailbox_; }
    [[nodiscard]] int uffd() const { return uffd_.get(); }
    [[nodiscard]] StubThread& executor() { return *executor_; }
    [[nodiscard]] StubThread& puncher() { return *puncher_; }
    [[nodiscard]] bool has_helpers() const { return executor_ && puncher_; }
    [[nodiscard]] StubThread* waker() { return waker_.get(); }
    [[nodiscard]] pid_t waker_tid() const { return waker_tid_; }
    [[nodiscard]] pid_t puncher_tid() const { return puncher_tid_; }
    [[nodiscard]] pid_t executor_tid() const { return executor_tid_; }

    // Every stub thread of this process by slot, for the listener's PARK notifications.
    void add_stub_thread(StubThread& thread);
    void remove_stub_thread(const StubThread& thread);
    // The thread is dead and nobody waits for it any more: its slot may be used again.
    void retire(const StubThread& thread);
    [[nodiscard]] StubThread* stub_thread(Mailbox::SlotIndex slot);
    // No thread of it is in the stub any more: who waits for one need not wait. unwatched: nor is
    // its memory watched any more, all of which must be here.
    void on_exec(bool unwatched = false);

    AddressSpace space;
    bool lost = false;  // its memory cannot be had any more: see poison()

private:
    // Pages of any of the categories (PAGE_IS_*) that have none of the others.
    std::optional<Touched> scan(Range range, size_t most, uint64_t any_of, uint64_t none_of);
    // All of them.
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
    int uffd_number_ = -1;  // in the puncher
    std::unique_ptr<StubThread> puncher_;
    std::unique_ptr<StubThread> executor_;
    std::unique_ptr<StubThread> waker_;
    pid_t puncher_tid_ = 0;
    pid_t executor_tid_ = 0;
    pid_t waker_tid_ = 0;
    AsyncMutex scratch_;
    uint64_t scratch_used_[2] = {};  // pages that lie in the scratch areas, RW and RWX
    std::vector<StubThread*> by_slot_;
};

}  // namespace gpr
