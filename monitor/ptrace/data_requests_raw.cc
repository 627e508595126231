#include "monitor/ptrace/data_requests_raw.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace gpr::ptrace {

namespace {

// Missing from the C library's header, or named differently there.
constexpr uint64_t peek_signals = 0x4209, get_signal_mask = 0x420a, set_signal_mask = 0x420b,
                   get_filter = 0x420c, get_call = 0x420e, get_rseq = 0x420f;
constexpr uint64_t arch_prctl_request = 30;
constexpr uint64_t arch_set_gs = 0x1001, arch_set_fs = 0x1002, arch_get_fs = 0x1003,
                   arch_get_gs = 0x1004, arch_untag_mask = 0x4001, arch_tag_bits = 0x4003,
                   arch_shadow_stack_status = 0x5005;
constexpr size_t largest_set = 64UL << 10;
constexpr size_t call_info_size = 128, rseq_info_size = 24;
constexpr int32_t most_signals = 1024;

struct PeekSignals {
    uint64_t from = 0;
    uint32_t flags = 0;
    int32_t count = 0;
};

int64_t make(uint64_t kind, pid_t tracee, uint64_t address, const void* data) {
    const long result = syscall(SYS_ptrace, kind, static_cast<long>(tracee), address, data);
    return result < 0 ? -errno : result;
}

// What the request stores, or takes, in a block whose size is known.
size_t block_of(uint64_t kind) {
    switch (kind) {
        case PTRACE_GETREGS:
        case PTRACE_SETREGS: return sizeof(user_regs_struct);
        case PTRACE_GETFPREGS:
        case PTRACE_SETFPREGS: return sizeof(user_fpregs_struct);
        case PTRACE_GETSIGINFO:
        case PTRACE_SETSIGINFO: return sizeof(siginfo_t);
        case PTRACE_GETEVENTMSG: return sizeof(unsigned long);
        default: return 0;
    }
}

bool stores(uint64_t kind) {
    return kind == PTRACE_GETREGS || kind == PTRACE_GETFPREGS || kind == PTRACE_GETSIGINFO ||
           kind == PTRACE_GETEVENTMSG;
}

Task<int64_t> block_request(pid_t tracee, Request request, TracersMemory& memory) {
    std::vector<std::byte> block(block_of(request.kind));
    const Address at{request.data};
    if (!stores(request.kind)) {
        const bool there = co_await memory.read(at, block);
        if (!there) co_return -EFAULT;
        co_return make(request.kind, tracee, 0, block.data());
    }
    const int64_t result = make(request.kind, tracee, 0, block.data());
    if (result < 0) co_return result;
    const bool written = co_await memory.write(at, block);
    co_return written ? result : -EFAULT;
}

Task<int64_t> peek(pid_t tracee, Request request, TracersMemory& memory) {
    uint64_t word = 0;
    const int64_t result = make(request.kind, tracee, request.address, &word);
    if (result < 0) co_return result;
    const auto bytes = std::as_bytes(std::span(&word, 1));
    const bool written = co_await memory.write({request.data}, bytes);
    co_return written ? 0 : -EFAULT;
}

Task<int64_t> register_set(pid_t tracee, Request request, TracersMemory& memory) {
    iovec theirs{};
    auto described = std::as_writable_bytes(std::span(&theirs, 1));
    const bool known = co_await memory.read({request.data}, described);
    if (!known) co_return -EFAULT;
    std::vector<std::byte> set(std::min(theirs.iov_len, largest_set));
    iovec ours{set.data(), set.size()};
    const Address at{reinterpret_cast<uint64_t>(theirs.iov_base)};
    const bool is_get = request.kind == PTRACE_GETREGSET;
    if (!is_get) {
        const bool there = co_await memory.read(at, set);
        if (!there) co_return -EFAULT;
    }
    const int64_t result = make(request.kind, tracee, request.address, &ours);
    if (result < 0) co_return result;
    if (is_get) {
        const auto filled = std::span<const std::byte>(set).first(ours.iov_len);
        const bool written = co_await memory.write(at, filled);
        if (!written) co_return -EFAULT;
    }
    theirs.iov_len = ours.iov_len;
    const auto answer = std::as_bytes(std::span(&theirs, 1));
    const bool told = co_await memory.write({request.data}, answer);
    co_return told ? result : -EFAULT;
}

// The caller gives the size of its block.
Task<int64_t> sized_get(pid_t tracee, Request request, TracersMemory& memory, size_t size) {
    std::vector<std::byte> block(size);
    const int64_t result = make(request.kind, tracee, request.address, block.data());
    if (result < 0) co_return result;
    const auto stored = std::min({size, static_cast<size_t>(result), request.address});
    const auto bytes = std::span<const std::byte>(block).first(stored);
    const bool written = co_await memory.write({request.data}, bytes);
    co_return written ? result : -EFAULT;
}

Task<int64_t> signals_waiting(pid_t tracee, Request request, TracersMemory& memory) {
    PeekSignals which;
    auto described = std::as_writable_bytes(std::span(&which, 1));
    const bool known = co_await memory.read({request.address}, described);
    if (!known) co_return -EFAULT;
    which.count = std::min(which.count, most_signals);
    std::vector<siginfo_t> found(static_cast<size_t>(std::max(which.count, 0)));
    const int64_t count =
        make(request.kind, tracee, reinterpret_cast<uint64_t>(&which), found.data());
    if (count <= 0) co_return count;
    const auto bytes = std::as_bytes(std::span(found).first(static_cast<size_t>(count)));
    const bool written = co_await memory.write({request.data}, bytes);
    co_return written ? count : -EFAULT;
}

Task<int64_t> mask_request(pid_t tracee, Request request, TracersMemory& memory) {
    uint64_t mask = 0;
    if (request.address != sizeof mask) co_return -EINVAL;
    if (request.kind == set_signal_mask) {
        auto bytes = std::as_writable_bytes(std::span(&mask, 1));
        const bool there = co_await memory.read({request.data}, bytes);
        co_return there ? make(request.kind, tracee, sizeof mask, &mask) : -EFAULT;
    }
    const int64_t result = make(request.kind, tracee, sizeof mask, &mask);
    if (result < 0) co_return result;
    const auto bytes = std::as_bytes(std::span(&mask, 1));
    const bool written = co_await memory.write({request.data}, bytes);
    co_return written ? result : -EFAULT;
}

// PTRACE_ARCH_PRCTL. The kernel stores what it reads into our memory, so the address is the
// program's only for requests that are known to store nothing.
Task<int64_t> base_request(pid_t tracee, Request request, TracersMemory& memory) {
    const bool sets = request.data == arch_set_fs || request.data == arch_set_gs;
    const bool reads = request.data == arch_get_fs || request.data == arch_get_gs ||
                       request.data == arch_untag_mask || request.data == arch_tag_bits ||
                       request.data == arch_shadow_stack_status;
    if (!sets && !reads) co_return -EINVAL;
    uint64_t base = 0;
    const uint64_t at = reads ? reinterpret_cast<uint64_t>(&base) : request.address;
    const long made =
        syscall(SYS_ptrace, request.kind, static_cast<long>(tracee), at, request.data);
    if (made < 0) co_return -errno;
    if (!reads) co_return made;
    const auto bytes = std::as_bytes(std::span(&base, 1));
    const bool written = co_await memory.write({request.address}, bytes);
    co_return written ? made : -EFAULT;
}

}  // namespace

Task<int64_t> make_data_request(pid_t tracee, Request request, TracersMemory& memory) {
    switch (request.kind) {
        case PTRACE_PEEKTEXT:
        case PTRACE_PEEKDATA:
        case PTRACE_PEEKUSER: co_return co_await peek(tracee, request, memory);
        case PTRACE_POKETEXT:
        case PTRACE_POKEDATA:
        case PTRACE_POKEUSER:
            co_return make(request.kind, tracee, request.address,
                           reinterpret_cast<const void*>(request.data));
        case PTRACE_GETREGSET:
        case PTRACE_SETREGSET: co_return co_await register_set(tracee, request, memory);
        case peek_signals: co_return co_await signals_waiting(tracee, request, memory);
        case get_signal_mask:
        case set_signal_mask: co_return co_await mask_request(tracee, request, memory);
        case get_call: co_return co_await sized_get(tracee, request, memory, call_info_size);
        case get_rseq: co_return co_await sized_get(tracee, request, memory, rseq_info_size);
        case arch_prctl_request: co_return co_await base_request(tracee, request, memory);
        case get_filter: co_return -EACCES;
        default: break;
    }
    if (block_of(request.kind) == 0) co_return -EIO;
    co_return co_await block_request(tracee, request, memory);
}

}  // namespace gpr::ptrace
