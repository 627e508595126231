#include "syscall/clone_request.h"

#include <sys/syscall.h>

#include <cerrno>
#include <climits>
#include <csignal>

#include "base/address.h"

namespace gpr {

namespace {
constexpr uint64_t signal_bits = 0xff;    // CSIGNAL
constexpr uint64_t highest_signal = 64;   // _NSIG
constexpr uint64_t new_time = 0x80;       // CLONE_NEWTIME, only for clone3
constexpr uint64_t most_namespaces = 32;  // MAX_PID_NS_LEVEL

// access_ok()
bool in_user_space(uint64_t begin, uint64_t size) {
    return size <= user_space_end && begin <= user_space_end - size;
}
}  // namespace

CloneRequest clone_request(uint32_t number, const std::array<uint64_t, 6>& args) {
    CloneRequest request;
    request.exit_signal = SIGCHLD;
    if (number == SYS_fork) return request;
    request.flags = CLONE_VM | CLONE_VFORK;
    if (number == SYS_vfork) return request;
    auto flags = static_cast<uint32_t>(args[0]);
    request.flags = flags & ~signal_bits;
    request.exit_signal = flags & signal_bits;
    request.stack = args[1];
    request.parent_tid = request.pidfd = args[2];
    request.child_tid = args[3];
    request.tls = args[4];
    // clone ignores these; clone3 would refuse them.
    if (!request.has(CLONE_PIDFD)) request.flags &= ~uint64_t{CLONE_DETACHED};
    bool without_signal = request.has(CLONE_THREAD | CLONE_PARENT);
    if (without_signal || request.exit_signal > highest_signal) request.exit_signal = 0;
    return request;
}

// copy_clone_args_from_user(), then clone3_args_valid().
int clone3_error(const clone_args& args, uint64_t size) {
    constexpr uint64_t known = 0xffffffff | CLONE_CLEAR_SIGHAND | CLONE_INTO_CGROUP;
    constexpr uint64_t not_its = CLONE_DETACHED | (signal_bits & ~new_time);
    bool into_cgroup = args.flags & CLONE_INTO_CGROUP;
    bool no_signal = args.flags & (CLONE_THREAD | CLONE_PARENT);
    bool stack_sound = args.stack == 0
                           ? args.stack_size == 0
                           : args.stack_size != 0 && in_user_space(args.stack, args.stack_size);
    bool wrong =
        args.set_tid_size > most_namespaces || (args.set_tid == 0) != (args.set_tid_size == 0) ||
        args.exit_signal > highest_signal ||
        (into_cgroup && (args.cgroup > INT_MAX || size < CLONE_ARGS_SIZE_VER2)) ||
        (args.flags & (not_its | ~known)) || (no_signal && args.exit_signal != 0) || !stack_sound;
    return wrong ? EINVAL : 0;
}

CloneRequest clone_request(const clone_args& args) {
    CloneRequest request;
    request.flags = args.flags;
    request.exit_signal = args.exit_signal;
    request.stack = args.stack == 0 ? 0 : args.stack + args.stack_size;
    request.parent_tid = args.parent_tid;
    request.child_tid = args.child_tid;
    request.tls = args.tls;
    request.pidfd = args.pidfd;
    request.cgroup = args.cgroup;
    return request;
}

}  // namespace gpr
