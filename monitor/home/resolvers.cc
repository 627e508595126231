#include "monitor/home/resolvers.h"

#include <sys/ptrace.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "base/log.h"
#include "monitor/home/failures.h"
#include "monitor/home/functions.h"
#include "monitor/home/home.h"
#include "monitor/home/signals.h"
#include "monitor/home/stops.h"
#include "monitor/home/trap_state.h"
#include "monitor/tracee/ptrace.h"

namespace gpr::home {

namespace {
// A resolver that reads CPU feature bits takes a few steps, one that executes CPUID a few hundred.
constexpr int most_steps = 200000;

bool is_fault(int signal) {
    return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE;
}

}  // namespace

Task<void> Resolvers::run_resolver(HomeThread& thread, ThreadContext context, Breakpoint met) {
    HomeProcess& process = *thread.process;
    std::shared_ptr<Fragment> fragment = process.fragment;
    if (!fragment) {  // an unsplit child uses what its parent's resolver chose
        co_await home_.functions.run_function_here(thread, std::move(context), std::move(met));
        co_return;
    }
    Mapping* m = fragment->space.find({context.regs.rip});
    std::byte first{};
    auto offset = static_cast<off_t>(m->content_offset + (context.regs.rip - m->range.begin.value));
    bool known = pread(m->content->get(), &first, 1, offset) == 1;
    if (!known || fragment->memory().write({context.regs.rip}, &first, 1) != 1) {
        home_.failures.abandon(
            fmt::format("cannot run the resolver of {}!{}", met.library, met.function.name));
        co_return;
    }
    trace::set_registers(thread.tid, context.regs);
    pid_t tid = thread.tid;
    const Stepped how = co_await step_to_return(thread, context);
    const bool returned = how == Stepped::returned;
    if (!home_.threads.contains(tid)) co_return;
    if (returned) {
        choose_resolved(process, met, {context.regs.rax});
    } else {
        home_.outputs.tell(fmt::format("{}!{} stays at home: its resolver does not return",
                                       met.library, met.function.name));
    }
    if (how == Stepped::handed_on) co_return;
    bool disposition_lost = process.trap_action[0] == reinterpret_cast<uint64_t>(SIG_IGN);
    auto now = capture_context(tid);
    if (!disposition_lost || !returned || !now) {
        trace::resume(tid);
        co_return;
    }
    if (!home_.stops.divert(thread, *now)) co_return;
    co_await home_.trap_state.repair_trap_action(thread);
    co_await home_.stops.go_on(thread, *now);
}

// Single-steps until the resolver returns, unless it takes too long or does something else. A fault
// or an event is handed on to those who handle them, who also resume the thread.
Task<Resolvers::Stepped> Resolvers::step_to_return(HomeThread& thread, ThreadContext& context) {
    pid_t tid = thread.tid;
    uint64_t to = 0;
    Address top{context.regs.rsp};
    if (!thread.process->fragment->memory().read_exact(top, &to, sizeof to))
        co_return Stepped::did_not_return;
    // Postpone other signals. SIGTRAP stays unblocked, because each step raises one.
    trace::set_signal_mask(tid, ~(1ULL << (SIGTRAP - 1)));
    bool returned = false, stopped = false;
    for (int steps = 0; steps < most_steps && !returned; steps++) {
        trace::single_step(tid);
        WaitStatus status = co_await home_.stops.next_stop(thread);
        if (status.ended()) co_return Stepped::did_not_return;
        bool signal = status.kind == WaitStatus::Kind::signal_stop && status.value != SIGTRAP;
        if ((signal && is_fault(status.value)) || status.kind == WaitStatus::Kind::event) {
            trace::set_signal_mask(tid, context.signal_mask);
            home_.on_wait(tid, status);
            co_return Stepped::handed_on;
        }
        stopped |=
            status.kind == WaitStatus::Kind::group_stop || (signal && status.value == SIGSTOP);
        auto regs = trace::registers(tid);
        if (!regs) co_return Stepped::did_not_return;
        context.regs = *regs;
        returned = regs->rip == to && regs->rsp == top.value + sizeof to;
    }
    trace::set_signal_mask(tid, context.signal_mask);
    if (stopped) Signals::stop_after_all(thread);
    co_return returned ? Stepped::returned : Stepped::did_not_return;
}

void Resolvers::choose_resolved(HomeProcess& process, const Breakpoint& resolver,
                                Address resolved) {
    AddressSpace& space = process.fragment->space;
    auto keep_at_home = [&](const char* why) {
        std::string name = fmt::format("{}!{}", resolver.library, resolver.function.name);
        bool first = home_.stats.functions.try_emplace(name).second;
        if (first) home_.outputs.tell(fmt::format("{} stays at home: {}", name, why));
    };
    Mapping* m = space.find(resolved);
    if (!m || !m->functions) {  // such as a function of the vdso
        keep_at_home("its resolver found code that is not the library's");
        return;
    }
    uint64_t begin = m->content_offset + (resolved - m->range.begin);
    auto rest = rest_of_function(m->content->get(), begin);
    if (!rest) {
        keep_at_home("nothing tells where its code ends");
        return;
    }
    std::shared_ptr<const ChosenFunctions> before = m->functions;
    auto changed = std::make_shared<ChosenFunctions>(*before);
    std::erase(changed->list, resolver.function);
    changed->add({begin, begin + *rest, resolver.function.name, false});
    space.for_each({{0}, {~0UL & page_mask}}, [&](Mapping& part) {
        if (part.functions == before) part.functions = changed;
    });
    spdlog::debug("{}!{} is at {:#x}", resolver.library, resolver.function.name, resolved.value);
    home_.functions.set_breakpoints_again(*process.fragment,
                                          Range{resolved, resolved + *rest}.pages());
}

}  // namespace gpr::home
