// The program installs a seccomp filter. At home the stub makes the program's calls, and others
// that only gpr knows of: parking, the fetching of pages. A filter that allows what it lists would
// end those as well, so it gets a beginning that lets them pass. What the program asks for leaves
// the stub by an instruction of its own and is judged as ever.
//
// Calls that run at the acceptor are not judged.

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstring>

#include "monitor/home_session.h"

namespace gpr {

namespace {

constexpr unsigned short jump_if_equal = BPF_JMP | BPF_JEQ | BPF_K;
constexpr unsigned short load = BPF_LD | BPF_W | BPF_ABS;

// The kernel tells where the thread goes on, behind the instruction.
constexpr uint64_t syscall_size = 2;

constexpr uint32_t field(size_t offset) { return static_cast<uint32_t>(offset); }

// Little endian: the low half comes first.
constexpr uint32_t rip_low = field(offsetof(seccomp_data, instruction_pointer));
constexpr uint32_t rip_high = rip_low + 4;

constexpr sock_filter beginning[] = {
    {load, 0, 0, field(offsetof(seccomp_data, nr))},
    {jump_if_equal, 4, 0, GPR_PARK},  // also while a child is being prepared: from anywhere
    {load, 0, 0, rip_high},
    {jump_if_equal, 0, 3, static_cast<uint32_t>(GPR_STUB_HIGH_WORD)},
    {load, 0, 0, rip_low},
    {jump_if_equal, 1, 0, static_cast<uint32_t>(GPR_STUB_PROGRAM_CALL + syscall_size)},
    {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
    {BPF_LD | BPF_IMM, 0, 0, 0},  // the program's filter finds its accumulator as it must be
};

}  // namespace

bool HomeSession::installs_filter(uint64_t number, const uint64_t* args) {
    return (number == SYS_seccomp && static_cast<uint32_t>(args[0]) == SECCOMP_SET_MODE_FILTER) ||
           (number == SYS_prctl && static_cast<uint32_t>(args[0]) == PR_SET_SECCOMP &&
            args[1] == SECCOMP_MODE_FILTER);
}

// A sock_fprog and its instructions, as they are to be at this address; nothing if the kernel will
// refuse what the program gives.
Task<std::vector<std::byte>> HomeSession::filter_for(std::shared_ptr<Fragment> fragment,
                                                     Address program, Address to) {
    sock_fprog given{};
    if (!co_await pager_.read(*fragment, program, std::as_writable_bytes(std::span(&given, 1)))) {
        co_return std::vector<std::byte>{};
    }
    if (given.len == 0 || given.len > BPF_MAXINSNS - std::size(beginning))
        co_return std::vector<std::byte>{};
    size_t at = sizeof given + sizeof beginning, size = given.len * sizeof(sock_filter);
    std::vector<std::byte> made(at + size);
    Address code{reinterpret_cast<uint64_t>(given.filter)};
    if (!co_await pager_.read(*fragment, code, std::span(made).subspan(at)))
        co_return std::vector<std::byte>{};
    given.len = static_cast<unsigned short>(given.len + std::size(beginning));
    given.filter = reinterpret_cast<sock_filter*>((to + sizeof given).value);
    std::memcpy(made.data(), &given, sizeof given);
    std::memcpy(made.data() + sizeof given, beginning, sizeof beginning);
    co_return made;
}

// Program code at home installs one.
Task<void> HomeSession::filter_call(HomeProcess& process, HomeThread& thread, Notification n) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    auto slot = thread.stub->slot();
    auto filter = co_await filter_for(fragment, {n.args[2]}, Mailbox::bounce_address(slot));
    if (!notifier_->still_valid(n.id)) co_return;
    if (filter.empty()) {
        notifier_->let_it_run(n.id);
        co_return;
    }
    auto context = co_await capture(thread);
    if (!context) co_return;
    std::vector<Call> calls{Call{n.number, {}, 0}};
    std::memcpy(calls[0].args, n.args, sizeof n.args);
    calls[0].args[2] = Mailbox::bounce_address(slot).value;
    std::memcpy(fragment->mailbox().bounce(slot).data(), filter.data(), filter.size());
    co_await thread.stub->run(calls);
    if (thread.stub->dead()) co_return;
    context->regs.rax = static_cast<uint64_t>(calls[0].result);
    context->regs.orig_rax = ~0UL;
    thread.masked = false;
    co_await thread.stub->resume(*context);
}

}  // namespace gpr
