// IFUNC: an exported function whose code is found when the program is linked, by a resolver that
// the library has for it. The resolver runs at home, with a breakpoint at its first instruction;
// what it returns is the function that the rule means.

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "monitor/home_session.h"

namespace gpr {

namespace {
// Resolvers look at bits that say what the CPU can do; those that ask it take a few hundred.
constexpr int most_steps = 200000;
}  // namespace

Task<void> HomeSession::run_resolver(HomeThread& thread, ThreadContext context, Breakpoint met) {
    HomeProcess& process = *thread.process;
    std::shared_ptr<Fragment> fragment = process.fragment;
    if (!fragment) {  // a child that is not split runs its parent's choice
        co_await run_function_here(thread, std::move(context), std::move(met));
        co_return;
    }
    Mapping* m = fragment->space.find({context.regs.rip});
    std::byte first{};
    auto offset = static_cast<off_t>(m->content_offset + (context.regs.rip - m->range.begin.value));
    bool known = pread(m->content->get(), &first, 1, offset) == 1;
    if (!known || fragment->memory().write({context.regs.rip}, &first, 1) != 1) {
        abandon(fmt::format("cannot run the resolver of {}!{}", met.library, met.function.name));
        co_return;
    }
    trace::set_registers(thread.tid, context.regs);
    pid_t tid = thread.tid;
    bool returned = co_await step_to_return(thread, context);
    if (!threads_.contains(tid)) co_return;
    if (returned) {
        choose_resolved(process, met, {context.regs.rax});
    } else {
        tell_user(fmt::format("{}!{} stays at home: its resolver did not return", met.library,
                              met.function.name));
    }
    trace::resume(tid);
}

// Instruction by instruction. False: it takes too long, or does something else.
Task<bool> HomeSession::step_to_return(HomeThread& thread, ThreadContext& context) {
    pid_t tid = thread.tid;
    uint64_t to = 0;
    Address top{context.regs.rsp};
    if (!thread.process->fragment->memory().read_exact(top, &to, sizeof to)) co_return false;
    std::vector<siginfo_t> meanwhile;
    bool returned = false;
    for (int steps = 0; steps < most_steps && !returned; steps++) {
        trace::single_step(tid);
        WaitStatus status = co_await next_stop(thread);
        if (status.ended()) co_return false;
        if (status.kind == WaitStatus::Kind::event) {
            on_wait(tid, status);
            co_return false;
        }
        if (status.kind == WaitStatus::Kind::signal_stop && status.value != SIGTRAP) {
            if (auto info = trace::signal_info(tid)) meanwhile.push_back(*info);
        }
        auto regs = trace::registers(tid);
        if (!regs) co_return false;
        context.regs = *regs;
        returned = regs->rip == to && regs->rsp == top.value + sizeof to;
    }
    for (const siginfo_t& info : meanwhile) {
        thread.postponed.add(info);
        syscall(SYS_tgkill, thread.process->pid, tid, info.si_signo);
    }
    co_return returned;
}

void HomeSession::choose_resolved(HomeProcess& process, const Breakpoint& resolver,
                                  Address resolved) {
    AddressSpace& space = process.fragment->space;
    Mapping* m = space.find(resolved);
    std::optional<Range> code;
    if (m && m->functions) {
        uint64_t offset = m->content_offset + (resolved - m->range.begin);
        if (auto rest = rest_of_function(m->content->get(), offset)) {
            code = Range{resolved, resolved + *rest};
        }
    }
    if (!code) {
        tell_user(fmt::format("{}!{} stays at home: its code has no unwind information",
                              resolver.library, resolver.function.name));
        return;
    }
    std::shared_ptr<const ChosenFunctions> before = m->functions;
    auto changed = std::make_shared<ChosenFunctions>(*before);
    std::erase(changed->list, resolver.function);
    uint64_t begin = m->content_offset + (resolved - m->range.begin);
    changed->add({begin, begin + code->size(), resolver.function.name, false});
    space.for_each({{0}, {~0UL & page_mask}}, [&](Mapping& part) {
        if (part.functions == before) part.functions = changed;
    });
    spdlog::debug("{}!{} is at {:#x}", resolver.library, resolver.function.name, resolved.value);
    set_breakpoints_again(*process.fragment, code->pages());
}

}  // namespace gpr
