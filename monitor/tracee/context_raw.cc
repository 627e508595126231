#include "monitor/tracee/context_raw.h"

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include <cstring>

#include "monitor/tracee/extended_state.h"

#ifndef PTRACE_GETSIGMASK
#define PTRACE_GETSIGMASK 0x420a
#define PTRACE_SETSIGMASK 0x420b
#endif

namespace gpr {

namespace {

// struct rt_sigframe of arch/x86/include/asm/sigframe.h: return address, ucontext, siginfo.
struct KernelSigcontext {
    uint64_t r8, r9, r10, r11, r12, r13, r14, r15, di, si, bp, bx, dx, ax, cx, sp, ip, flags;
    uint16_t cs, gs, fs, ss;
    uint64_t err, trapno, oldmask, cr2, fpstate, reserved[8];
};
struct KernelUcontext {
    uint64_t flags, link;
    uint64_t stack_sp, stack_flags, stack_size;
    KernelSigcontext mcontext;
    uint64_t sigmask;
};
struct KernelFrame {
    uint64_t return_address;
    KernelUcontext uc;
    uint8_t siginfo[128];
};

constexpr uint64_t uc_fp_xstate = 1, uc_sigcontext_ss = 2, uc_strict_restore_ss = 4;
constexpr uint32_t fp_xstate_magic1 = 0x46505853, fp_xstate_magic2 = 0x46505845;
constexpr size_t software_bytes_at = 464;  // in the legacy FXSAVE area
// An invalid mode: sigreturn then leaves the alternate stack of this kernel thread as it is.
constexpr uint64_t keep_altstack = 0x40;

struct SoftwareBytes {
    uint32_t magic1, extended_size;
    uint64_t xfeatures;
    uint32_t xstate_size;
};

}  // namespace

Result<ThreadContext> capture_context(pid_t tid) {
    ThreadContext context;
    if (ptrace(PTRACE_GETREGS, tid, nullptr, &context.regs) != 0) {
        return fail(errno, "cannot read a thread's registers");
    }
    // The kernel may return less, for state components that the thread has not asked for.
    context.xstate.resize(ExtendedStateLayout::of_this_processor().size);
    iovec io{context.xstate.data(), context.xstate.size()};
    if (ptrace(PTRACE_GETREGSET, tid, NT_X86_XSTATE, &io) != 0) {
        return fail(errno, "cannot read a thread's extended state");
    }
    context.xstate.resize(io.iov_len);
    if (ptrace(static_cast<__ptrace_request>(PTRACE_GETSIGMASK), tid, 8, &context.signal_mask)) {
        return fail(errno, "cannot read a thread's signal mask");
    }
    return context;
}

Result<void> apply_context(pid_t tid, const ThreadContext& context) {
    user_regs_struct regs = context.regs;
    if (ptrace(PTRACE_SETREGS, tid, nullptr, &regs) != 0) {
        return fail(errno, "cannot set a thread's registers");
    }
    if (!context.xstate.empty()) {
        iovec io{const_cast<std::byte*>(context.xstate.data()), context.xstate.size()};
        if (ptrace(PTRACE_SETREGSET, tid, NT_X86_XSTATE, &io) != 0) {
            return fail(errno, "cannot set a thread's extended state");
        }
    }
    uint64_t mask = context.signal_mask;
    if (ptrace(static_cast<__ptrace_request>(PTRACE_SETSIGMASK), tid, 8, &mask) != 0) {
        return fail(errno, "cannot set a thread's signal mask");
    }
    return {};
}

size_t write_sigreturn_frame(const ThreadContext& context, HostileMemory frame,
                             uint64_t frame_address) {
    constexpr size_t fp_at = (sizeof(KernelFrame) + 63) & ~size_t{63};
    // Include only the components in use: the kernel refuses a frame with room for state that the
    // thread has no permission for, such as AMX, and then drops the vector registers.
    constexpr uint64_t legacy_features = 3;
    size_t xstate_size =
        extended_state_end(ExtendedStateLayout::of_this_processor(), context.xstate);
    size_t need = fp_at + xstate_size + sizeof(uint32_t);
    if (need > frame.size()) return 0;

    const user_regs_struct& r = context.regs;
    KernelFrame f{};
    f.uc.flags = uc_sigcontext_ss | uc_strict_restore_ss;
    f.uc.stack_flags = keep_altstack;
    f.uc.sigmask = context.signal_mask;
    KernelSigcontext& m = f.uc.mcontext;
    m.r8 = r.r8, m.r9 = r.r9, m.r10 = r.r10, m.r11 = r.r11;
    m.r12 = r.r12, m.r13 = r.r13, m.r14 = r.r14, m.r15 = r.r15;
    m.di = r.rdi, m.si = r.rsi, m.bp = r.rbp, m.bx = r.rbx;
    m.dx = r.rdx, m.ax = r.rax, m.cx = r.rcx, m.sp = r.rsp, m.ip = r.rip, m.flags = r.eflags;
    m.cs = static_cast<uint16_t>(r.cs), m.ss = static_cast<uint16_t>(r.ss);
    if (!context.xstate.empty()) {
        f.uc.flags |= uc_fp_xstate;
        m.fpstate = frame_address + fp_at;
        HostileMemory fp = frame.part(fp_at, xstate_size + sizeof fp_xstate_magic2);
        fp.write(0, std::span(context.xstate).first(xstate_size));
        SoftwareBytes sw{};
        sw.magic1 = fp_xstate_magic1;
        sw.xstate_size = static_cast<uint32_t>(xstate_size);
        sw.extended_size = sw.xstate_size + sizeof fp_xstate_magic2;
        sw.xfeatures = legacy_features | extended_state_in_use(context.xstate);
        fp.part(software_bytes_at, 48).clear();
        fp.put(software_bytes_at, sw);
        fp.put(xstate_size, fp_xstate_magic2);
    }
    frame.put(0, f);
    return need;
}

}  // namespace gpr
