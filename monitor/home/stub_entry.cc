#include "monitor/home/stub_entry.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/uapi/userfaultfd.h"
#include "base/userfaultfd.h"
#include "monitor/home/home.h"
#include "monitor/home/memory_limit.h"
#include "monitor/home/signals.h"
#include "monitor/home/stops.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/room_for_descriptors.h"
#include "syscall/park.h"

namespace gpr::home {

namespace {

constexpr uint64_t all_signals = ~0ULL;
// If SIGTRAP were blocked while we single-step, the kernel would reset the program's handler.
constexpr uint64_t all_but_trap = ~(1ULL << (SIGTRAP - 1));

}  // namespace

void StubEntry::answer(const HomeProcess& process, const Notification& n) const {
    const bool ours = process.mailbox_asked_for >= 0;
    // The process may have as many descriptors as it may have.
    auto give = [&](int fd) {
        const bool given = home_.filter_notifier->reply_with_fd(n.id, fd);
        if (!given) home_.notifier->reply_error(n.id, errno);
    };
    if (ours && n.args[0] == gpr_park_code) {
        give(stub_code_.get());
    } else if (ours && n.args[0] == gpr_park_mailbox) {
        give(process.mailbox_asked_for);
    } else {
        home_.notifier->reply_error(n.id, ENOSYS);
    }
}

Task<Result<int64_t>> StubEntry::inject(HomeThread& thread, uint64_t number, uint64_t a, uint64_t b,
                                        uint64_t c, uint64_t d, uint64_t e, uint64_t f) {
    pid_t tid = thread.tid;
    if (thread.process->doomed) co_return fail("the program is being ended");
    auto regs = trace::registers(tid);
    if (!regs) co_return tl::make_unexpected(regs.error());
    regs->rax = number, regs->orig_rax = ~0UL;
    regs->rdi = a, regs->rsi = b, regs->rdx = c, regs->r10 = d, regs->r8 = e, regs->r9 = f;
    regs->rip = thread.process->syscall_instruction.value;
    auto set = trace::set_registers(tid, *regs);
    if (!set) co_return tl::make_unexpected(set.error());
    trace::single_step(tid);
    Result<user_regs_struct> after;
    for (;;) {
        WaitStatus status = co_await home_.stops.next_stop(thread);
        if (status.ended()) co_return fail(ESRCH, "the program ended while it was being prepared");
        bool signal = status.kind == WaitStatus::Kind::signal_stop;
        thread.stop_met |= signal && status.value == SIGSTOP;  // SIGSTOP cannot be blocked
        after = trace::registers(tid);
        if (!after) co_return tl::make_unexpected(after.error());
        bool again = trace::is_restart(static_cast<long>(after->rax));
        if (signal && status.value == SIGTRAP && !again) break;
        trace::single_step(tid);
    }
    co_return from_kernel(static_cast<long>(after->rax), "a system call made for the program");
}

// Gives the shadow the program's mask, by which the kernel decides which thread gets a signal.
Task<void> StubEntry::take_mask(HomeThread& thread, uint64_t mask) {
    StubThread& stub = *thread.stub;
    auto guard = co_await stub.lock();
    stub.scratch().put(0, mask);
    uint64_t at = stub.scratch_address().value;
    std::vector<Call> calls{Call{SYS_rt_sigprocmask, {SIG_SETMASK, at, 0, sizeof mask}, 0}};
    co_await stub.run_locked(calls);
}

// Afterwards the thread is in the stub, and the process has a fragment, whose list of mappings is
// empty.
Task<Result<void>> StubEntry::prepare_stub(HomeProcess& process, HomeThread& thread) {
    trace::set_signal_mask(thread.tid, all_but_trap);

    auto memory = RemoteMemory::open(process.pid);
    if (!memory) co_return tl::make_unexpected(memory.error());
    auto maps = read_maps(process.pid);
    if (!maps) co_return tl::make_unexpected(maps.error());
    auto instruction = find_syscall_instruction(*maps, *memory);
    if (!instruction) co_return tl::make_unexpected(instruction.error());
    process.syscall_instruction = *instruction;
    RoomForDescriptors room(process.pid);
    const auto most = make_room_within_limits(process);
    if (!most) co_return tl::make_unexpected(most.error());
    Result<Files> files;
    if (home_.call_stops) {
        files = co_await files_of_its_own(process, thread, *maps, *most);
    } else {
        files = co_await files_of_ours(process, thread, *most);
    }
    if (!files) co_return tl::make_unexpected(files.error());
    process.fragment = std::make_shared<Fragment>(home_.loop, process.pid, process.pid,
                                                  std::move(*memory), std::move(files->box));
    auto entered = co_await enter_stub(process, thread, *files);
    if (!entered) co_return entered;
    auto opened = co_await open_uffd(process, thread);
    co_return opened;
}

// The filter's report of a call is answered with a descriptor.
Task<Result<StubEntry::Files>> StubEntry::files_of_ours(HomeProcess& process, HomeThread& thread,
                                                        uint64_t most) {
    Files files;
    auto box = Mailbox::create(most);
    if (!box) co_return tl::make_unexpected(box.error());
    files.box = std::move(*box);
    process.mailbox_asked_for = files.box->memfd();
    auto code = co_await inject(thread, gpr_park_number, gpr_park_code);
    Result<int64_t> mailbox = code;
    if (code) mailbox = co_await inject(thread, gpr_park_number, gpr_park_mailbox);
    process.mailbox_asked_for = -1;
    if (code && !mailbox) {
        auto closed = co_await inject(thread, SYS_close, static_cast<uint64_t>(*code));
        if (!closed) co_return tl::make_unexpected(closed.error());
    }
    if (!mailbox) co_return tl::make_unexpected(mailbox.error());
    files.code = *code;
    files.mailbox = *mailbox;
    co_return files;
}

// Without a filter we cannot give the process a descriptor, but can take one.
Task<Result<StubEntry::Files>> StubEntry::files_of_its_own(HomeProcess& process, HomeThread& thread,
                                                           const std::vector<MapsEntry>& maps,
                                                           uint64_t most) {
    Files files;
    const auto vdso = std::ranges::find(maps, "[vdso]", &MapsEntry::name);
    if (vdso == maps.end()) co_return fail("it has no vdso, where gpr looks for an empty name");
    constexpr uint64_t zeros_of_elf_header = 9;
    const uint64_t name = vdso->range.begin.value + zeros_of_elf_header;
    auto code = co_await inject(thread, SYS_memfd_create, name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (!code) co_return tl::make_unexpected(code.error());
    auto mailbox = co_await inject(thread, SYS_memfd_create, name, MFD_CLOEXEC);
    if (!mailbox) co_return tl::make_unexpected(mailbox.error());
    const Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0)));
    const Fd ours(static_cast<int>(syscall(SYS_pidfd_getfd, pidfd.get(), *code, 0)));
    Fd box(static_cast<int>(syscall(SYS_pidfd_getfd, pidfd.get(), *mailbox, 0)));
    if (!ours || !box) co_return fail(errno, "cannot take the program's new memory");
    auto written = Mailbox::write_code(ours.get());
    if (!written) co_return tl::make_unexpected(written.error());
    auto made = Mailbox::create(home_.loop, std::move(box), most);
    if (!made) co_return tl::make_unexpected(made.error());
    files.box = std::move(*made);
    files.code = *code;
    files.mailbox = *mailbox;
    co_return files;
}

Task<Result<void>> StubEntry::enter_stub(HomeProcess& process, HomeThread& thread,
                                         const Files& files) {
    Fragment& fragment = *process.fragment;
    struct Part {
        int64_t fd;
        uint64_t address, size;
        int prot;
    };
    for (Part part :
         {Part{files.code, GPR_STUB_CODE, page_size, PROT_READ | PROT_EXEC},
          Part{files.mailbox, GPR_MAILBOX, fragment.mailbox().size(), PROT_READ | PROT_WRITE}}) {
        auto mapped = co_await inject(
            thread, SYS_mmap, part.address, part.size, static_cast<uint64_t>(part.prot),
            MAP_SHARED | MAP_FIXED | MAP_NORESERVE, static_cast<uint64_t>(part.fd), 0);
        if (!mapped) co_return tl::make_unexpected(mapped.error());
    }
    auto slot = fragment.mailbox().allocate();
    if (!slot) co_return tl::make_unexpected(slot.error());
    thread.stub = std::make_unique<StubThread>(home_.loop, fragment.mailbox(), *slot);
    fragment.add_stub_thread(*thread.stub);
    auto regs = trace::registers(thread.tid);
    if (!regs) co_return tl::make_unexpected(regs.error());
    trace::set_signal_mask(thread.tid, all_signals);
    thread.stub->capture(thread.tid, *regs);
    // From now on only the stub makes our calls; the program's filters let it.
    for (const int64_t fd : {files.code, files.mailbox}) {
        co_await thread.stub->call(SYS_close, static_cast<uint64_t>(fd));
    }
    // A core dump would write gigabytes of unused memory, and allocate it.
    co_await thread.stub->call(SYS_madvise, GPR_MAILBOX, fragment.mailbox().size(), MADV_DONTDUMP);
    co_return Result<void>{};
}

Task<Result<void>> StubEntry::open_uffd(HomeProcess& process, HomeThread& thread) {
    StubThread& stub = *thread.stub;
    int64_t number = co_await stub.call(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    if (number == -EPERM) {
        // A normal user may open the device if the administrator allows it ('gpr setup'). We open
        // it, because the program may have changed to a user who may not.
        Fd device(open(userfaultfd_device, O_RDWR | O_CLOEXEC));
        int place = free_descriptor(process.pid);
        bool passed = device && co_await stub.take_fd(device.get(), place);
        if (passed) {
            number = co_await stub.call(SYS_ioctl, static_cast<uint64_t>(place),
                                        USERFAULTFD_IOC_NEW, O_CLOEXEC | O_NONBLOCK);
            co_await stub.call(SYS_close, static_cast<uint64_t>(place));
        }
    }
    auto checked = from_kernel(number, "userfaultfd is refused; 'gpr setup' as root grants it");
    if (!checked) co_return tl::make_unexpected(checked.error());
    Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0)));
    Fd uffd(static_cast<int>(syscall(SYS_pidfd_getfd, pidfd.get(), number, 0)));
    if (!uffd) co_return fail(errno, "cannot take over the program's userfaultfd");
    auto adopted = process.fragment->adopt_uffd(std::move(uffd));
    if (!adopted) co_return adopted;
    Fragment::NextId any_id = [] { return 0; };
    auto helped =
        co_await process.fragment->start_helpers(stub, static_cast<int>(number), any_id, false);
    if (!helped) co_return helped;
    if (!process.listener) {
        if (!home_.policy.mixed()) co_return helped;
        co_return co_await process.fragment->start_waker(stub, any_id, false);
    }
    // If the monitor is killed, no call of the program may fail with ENOSYS before the program
    // ends.
    bool held = co_await process.fragment->page_mover().take_fd(process.listener->get(),
                                                                static_cast<int>(number) + 1);
    if (!held) co_return fail("cannot give the page_mover the seccomp listener");
    if (!home_.policy.mixed()) co_return helped;
    co_return co_await process.fragment->start_waker(stub, any_id, false);
}

}  // namespace gpr::home
