#include "monitor/tracee/infected_filters.h"

#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "monitor/tracee/room_for_descriptors.h"
#include "stub/layout.h"

namespace gpr {

// A page of ours with a system call instruction. The prologue of the program's filters lets anybody
// map that page, and whatever is called there pass.
Result<> InfectedFilters::open_gate() {
    constexpr std::array<uint8_t, 2> instruction{0x0f, 0x05};
    GPR_TRY(const auto memory, RemoteMemory::open(its_.pid_));
    GPR_CHECK(its_.call(its_.threads_.front(), SYS_mmap,
                        {GPR_GATE, page_size, PROT_READ | PROT_EXEC,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, ~0ULL, 0}));
    if (!memory.write_exact({GPR_GATE}, instruction.data(), instruction.size())) {
        return fail(EIO, "cannot write where gpr makes its calls in the program");
    }
    its_.syscall_instruction_ = {GPR_GATE};
    return {};
}

// By a call at the gate itself: the kernel reports the step before it returns there.
void Infection::close_gate() {
    if (syscall_instruction_ == own_instruction_) return;
    (void)call(threads_.front(), SYS_munmap, {GPR_GATE, page_size});
    syscall_instruction_ = own_instruction_;
}

// Writes the filter and its sock_fprog into the room.
Result<> InfectedFilters::put(std::span<const sock_filter> filter) {
    const Address room = its_.room_;
    const sock_fprog program{static_cast<unsigned short>(filter.size()),
                             reinterpret_cast<sock_filter*>(room.value + page_size)};
    GPR_TRY(const auto memory, RemoteMemory::open(its_.pid_));
    if (filter.size_bytes() > Infection::room_size - page_size ||
        !memory.write_exact(room + page_size, filter.data(), filter.size_bytes()) ||
        !memory.write_exact(room, &program, sizeof program)) {
        return fail(EIO, "cannot give the program its filter");
    }
    return {};
}

Result<> InfectedFilters::install(std::span<const sock_filter> filter, bool has_listener) {
    StoppedThread& main = its_.threads_.front();
    const pid_t pid = its_.pid_;
    GPR_CHECK(its_.open_room());
    GPR_CHECK(put(filter));
    const uint64_t flags = SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH |
                           (has_listener ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0UL);
    const RoomForDescriptors room(pid);
    auto install = [&] {
        return its_.call(main, SYS_seccomp, {SECCOMP_SET_MODE_FILTER, flags, its_.room_.value});
    };
    auto listener = install();
    if (!listener && listener.error().code == EACCES) {
        // Without CAP_SYS_ADMIN a filter requires no_new_privs, so set-user-ID programs run without
        // privileges.
        GPR_CHECK(its_.call(main, SYS_prctl, {PR_SET_NO_NEW_PRIVS, 1}));
        listener = install();
    }
    if (!listener && listener.error().code == EBUSY) {
        return fail(EBUSY,
                    fmt::format("something else supervises the system calls of process {}", pid));
    }
    if (!listener) return tl::make_unexpected(listener.error());
    if (!has_listener) {
        its_.close_room();
        return {};
    }
    const Fd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    its_.listener_ = Fd(static_cast<int>(syscall(SYS_pidfd_getfd, process.get(), *listener, 0)));
    if (!its_.listener_) return fail(errno, "cannot take over the seccomp listener");
    GPR_CHECK(its_.call(main, SYS_close, {static_cast<uint64_t>(*listener)}));
    its_.close_room();
    return {};
}

Result<int64_t> InfectedFilters::install_for_program(pid_t tid, const Wanted& wanted) {
    const auto caller = std::ranges::find(its_.threads_, tid, &StoppedThread::tid);
    if (caller == its_.threads_.end()) return fail(ESRCH, "the thread has ended");
    GPR_CHECK(its_.open_room());
    GPR_CHECK(put(wanted.code));
    // The filter judges the calls that follow.
    if (its_.syscall_instruction_ == its_.own_instruction_) GPR_CHECK(open_gate());
    if (wanted.gives_up_privileges) {
        GPR_CHECK(its_.call(*caller, SYS_prctl, {PR_SET_NO_NEW_PRIVS, 1}));
    }
    const auto result =
        its_.call(*caller, SYS_seccomp, {SECCOMP_SET_MODE_FILTER, wanted.flags, its_.room_.value});
    its_.close_room();
    // Its refusal is the program's to see.
    constexpr std::array refusals{EACCES, EBUSY, ECANCELED, EFAULT, EINVAL, ENOMEM, ESRCH};
    const bool refused = !result && !its_.ended_ &&
                         std::ranges::find(refusals, result.error().code) != refusals.end();
    if (refused) return -int64_t{result.error().code};
    return result;
}

}  // namespace gpr
