// In the stub, and while a child is being prepared, gpr makes calls in the program's threads. A
// filter that only allows a list of calls would kill them, so each filter gets a prologue that
// allows these calls. It checks the instruction pointer: calls from the program's own code are
// judged as usual, and so is code that jumps into the stub.

#include "monitor/node/program_filter.h"

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "stub/layout.h"

#ifndef SECCOMP_FILTER_FLAG_TSYNC_ESRCH
#define SECCOMP_FILTER_FLAG_TSYNC_ESRCH 16
#endif

namespace gpr {

namespace {

constexpr unsigned short jump_if_equal = BPF_JMP | BPF_JEQ | BPF_K;
constexpr unsigned short load = BPF_LD | BPF_W | BPF_ABS;
constexpr unsigned short mask = BPF_ALU | BPF_AND | BPF_K;
constexpr unsigned short answer = BPF_RET | BPF_K;

constexpr uint32_t field(size_t offset) { return static_cast<uint32_t>(offset); }

constexpr uint32_t number_at = field(offsetof(seccomp_data, nr));
// Little endian: the low half comes first, so these are the high halves.
constexpr uint32_t rip_high = field(offsetof(seccomp_data, instruction_pointer)) + 4;
constexpr uint32_t address_high = field(offsetof(seccomp_data, args)) + 4;
constexpr uint64_t reserved_high = GPR_RESERVED_BEGIN >> 32;
constexpr auto reserved_mask =
    static_cast<uint32_t>(~((GPR_RESERVED_END - GPR_RESERVED_BEGIN - 1) >> 32));
static_assert((reserved_high & ~uint64_t{reserved_mask}) == 0);

// ours: the answer to calls that only gpr's code should make.
constexpr std::array<sock_filter, 11> beginning(uint32_t ours) {
    return {{
        {load, 0, 0, number_at},
        // From any address: a child that is being prepared makes it, too.
        {jump_if_equal, 1, 0, GPR_PARK},
        // We interrupt calls; the call that is resumed has been judged already.
        {jump_if_equal, 0, 1, SYS_restart_syscall},
        {answer, 0, 0, SECCOMP_RET_ALLOW},
        {jump_if_equal, 0, 3, SYS_mmap},  // maps the stub itself
        {load, 0, 0, address_high},
        {mask, 0, 0, reserved_mask},
        {jump_if_equal, 2, 0, static_cast<uint32_t>(reserved_high)},
        {load, 0, 0, rip_high},
        {jump_if_equal, 0, 1, static_cast<uint32_t>(GPR_STUB_HIGH_WORD)},
        {answer, 0, 0, ours},
    }};
}

constexpr auto allowing = beginning(SECCOMP_RET_ALLOW);
// The program's filter starts with an accumulator of 0.
constexpr sock_filter clean_start{BPF_LD | BPF_IMM, 0, 0, 0};

constexpr uint32_t trap_for(FilterDeath death) {
    return SECCOMP_RET_TRAP | static_cast<uint32_t>(death);
}

// The kernel's strict mode cannot be combined with filters, so it is done by a filter.
constexpr sock_filter strict_code[] = {
    {load, 0, 0, number_at},
    {jump_if_equal, 3, 0, SYS_read},
    {jump_if_equal, 2, 0, SYS_write},
    {jump_if_equal, 1, 0, SYS_exit},
    {jump_if_equal, 0, 1, SYS_rt_sigreturn},
    {answer, 0, 0, SECCOMP_RET_ALLOW},
    {answer, 0, 0, trap_for(FilterDeath::by_strict_mode)},
};

constexpr uint32_t filter_flags = SECCOMP_FILTER_FLAG_LOG | SECCOMP_FILTER_FLAG_SPEC_ALLOW;
constexpr uint32_t thread_flags = SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH;

// Writes a sock_fprog and its instructions, to be used at this address.
void put_filter(const ProgramFilter& filter, Address to, HostileMemory out) {
    const std::vector<sock_filter> code = with_prologue(filter, SECCOMP_RET_ALLOW);
    sock_fprog head{static_cast<unsigned short>(code.size()),
                    reinterpret_cast<sock_filter*>((to + sizeof(sock_fprog)).value)};
    out.put(0, head);
    out.write(sizeof head, std::as_bytes(std::span(code)));
}

bool is_sound(size_t instructions) {
    return instructions > 0 && instructions < BPF_MAXINSNS - allowing.size();
}

}  // namespace

std::vector<sock_filter> with_prologue(const ProgramFilter& filter, uint32_t ours) {
    const auto prologue = beginning(ours);
    std::vector<sock_filter> code(prologue.begin(), prologue.end());
    code.push_back(clean_start);
    code.insert(code.end(), filter.code.begin(), filter.code.end());
    return code;
}

int64_t FilterCall::refusal(pid_t thread) const { return tells_no_thread ? -ESRCH : thread; }

bool installs_filter(uint64_t number, const uint64_t* args) {
    auto what = static_cast<uint32_t>(args[0]);
    if (number == SYS_seccomp) {
        return what == SECCOMP_SET_MODE_FILTER || what == SECCOMP_SET_MODE_STRICT;
    }
    return number == SYS_prctl && what == PR_SET_SECCOMP;
}

bool asks_for_seccomp_mode(uint64_t number, const uint64_t* args) {
    return number == SYS_prctl && static_cast<uint32_t>(args[0]) == PR_GET_SECCOMP;
}

bool asks_for_listener(uint64_t number, const uint64_t* args) {
    return number == SYS_seccomp && static_cast<uint32_t>(args[0]) == SECCOMP_SET_MODE_FILTER &&
           (args[1] & SECCOMP_FILTER_FLAG_NEW_LISTENER) != 0;
}

Task<FilterCall> read_filter_call(Pager& pager, std::shared_ptr<Fragment> fragment, uint64_t number,
                                  std::array<uint64_t, 6> args) {
    ReadCaller read = [&pager, fragment](Address at, std::span<std::byte> into) {
        return pager.memory.read(*fragment, at, into);
    };
    co_return co_await read_filter_call(std::move(read), number, args);
}

Task<FilterCall> read_filter_call(ReadCaller read, uint64_t number, std::array<uint64_t, 6> args) {
    bool by_prctl = number == SYS_prctl;
    FilterCall call;
    auto filter = std::make_shared<ProgramFilter>();
    call.strict = by_prctl ? args[1] == SECCOMP_MODE_STRICT
                           : static_cast<uint32_t>(args[0]) == SECCOMP_SET_MODE_STRICT;
    auto flags = by_prctl ? 0 : static_cast<uint32_t>(args[1]);
    if (call.strict) {
        bool sound = by_prctl || (flags == 0 && args[2] == 0);
        filter->code.assign(std::begin(strict_code), std::end(strict_code));
        if (sound) call.filter = std::move(filter);
        co_return call;
    }
    // A filter with a listener is left to the kernel, which refuses a second listener beside ours.
    if (by_prctl ? args[1] != SECCOMP_MODE_FILTER : (flags & ~(filter_flags | thread_flags)) != 0) {
        co_return call;
    }
    sock_fprog given{};
    bool got = co_await read({args[2]}, std::as_writable_bytes(std::span(&given, 1)));
    if (!got || !is_sound(given.len)) co_return call;
    filter->flags = flags & filter_flags;
    filter->code.resize(given.len);
    Address at{reinterpret_cast<uint64_t>(given.filter)};
    got = co_await read(at, std::as_writable_bytes(std::span(filter->code)));
    if (!got) co_return call;
    for (sock_filter& step : filter->code) {
        // The program has no tracer, so SECCOMP_RET_TRACE means ENOSYS; our filter's answer would
        // win over it.
        bool traces =
            step.code == answer && (step.k & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_TRACE;
        if (traces) step.k = SECCOMP_RET_ERRNO | ENOSYS;
    }
    call.filter = std::move(filter);
    call.all_threads = flags & SECCOMP_FILTER_FLAG_TSYNC;
    call.tells_no_thread = flags & SECCOMP_FILTER_FLAG_TSYNC_ESRCH;
    co_return call;
}

Task<int64_t> install_filter(StubThread& stub, const ProgramFilter& filter, bool all_threads) {
    auto guard = co_await stub.lock();
    Address to = Mailbox::bounce_address(stub.slot());
    put_filter(filter, to, stub.bounce());
    uint64_t flags = filter.flags | (all_threads ? SECCOMP_FILTER_FLAG_TSYNC : 0u);
    std::vector<Call> calls{Call{SYS_seccomp, {SECCOMP_SET_MODE_FILTER, flags, to.value}, 0}};
    co_await stub.run_locked(calls);
    co_return calls[0].result;
}

ProgramFilter for_acceptor(const ProgramFilter& filter) {
    ProgramFilter milder = filter;
    for (sock_filter& step : milder.code) {
        if (step.code != answer) continue;
        uint32_t action = step.k & SECCOMP_RET_ACTION_FULL;
        if (action == SECCOMP_RET_KILL_PROCESS) step.k = trap_for(FilterDeath::of_process);
        if (action == SECCOMP_RET_KILL_THREAD) step.k = trap_for(FilterDeath::of_thread);
    }
    return milder;
}

std::optional<FilterDeath> filter_death(const siginfo_t& info) {
    constexpr int by_filter = 1;  // SYS_SECCOMP
    if (info.si_signo != SIGSYS || info.si_code != by_filter) return std::nullopt;
    auto death = static_cast<FilterDeath>(info.si_errno);
    switch (death) {
        case FilterDeath::of_process:
        case FilterDeath::of_thread:
        case FilterDeath::by_strict_mode: return death;
    }
    return std::nullopt;
}

void filters_to_wire(std::span<const std::shared_ptr<const ProgramFilter>> filters,
                     capnp::List<wire::SeccompFilter>::Builder out) {
    for (unsigned i = 0; i < filters.size(); i++) {
        const ProgramFilter& filter = *filters[i];
        out[i].setFlags(filter.flags);
        out[i].setCode({reinterpret_cast<const uint8_t*>(filter.code.data()),
                        filter.code.size() * sizeof(sock_filter)});
    }
}

FilterList filters_from_wire(capnp::List<wire::SeccompFilter>::Reader in) {
    FilterList filters;
    for (auto view : in) {
        auto bytes = view.getCode();
        auto filter = std::make_shared<ProgramFilter>();
        filter->flags = view.getFlags() & filter_flags;
        filter->code.resize(bytes.size() / sizeof(sock_filter));
        if (!is_sound(filter->code.size())) continue;
        std::memcpy(filter->code.data(), bytes.begin(), filter->code.size() * sizeof(sock_filter));
        filters.push_back(std::move(filter));
    }
    return filters;
}

}  // namespace gpr
