#include "monitor/home/calls.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include "monitor/home/acceptor_files.h"
#include "monitor/home/affinity.h"
#include "monitor/home/aio.h"
#include "monitor/home/births.h"
#include "monitor/home/contended_memory.h"
#include "monitor/home/cpu_timing.h"
#include "monitor/home/debugging.h"
#include "monitor/home/delegations.h"
#include "monitor/home/ends.h"
#include "monitor/home/faultfds.h"
#include "monitor/home/fd_names.h"
#include "monitor/home/file_copies.h"
#include "monitor/home/filters.h"
#include "monitor/home/forks_in_place.h"
#include "monitor/home/forwarded_call.h"
#include "monitor/home/helper_calls.h"
#include "monitor/home/home.h"
#include "monitor/home/layouts.h"
#include "monitor/home/loans.h"
#include "monitor/home/local_calls.h"
#include "monitor/home/lookups.h"
#include "monitor/home/main_stack.h"
#include "monitor/home/memory_calls.h"
#include "monitor/home/memory_files.h"
#include "monitor/home/memory_gate.h"
#include "monitor/home/passed_signals.h"
#include "monitor/home/proc_files.h"
#include "monitor/home/remote_usage.h"
#include "monitor/home/shared_memory.h"
#include "monitor/home/signal_actions.h"
#include "monitor/home/tracing.h"
#include "monitor/home/truncation.h"
#include "monitor/node/address_plan.h"
#include "monitor/node/guard_advice.h"
#include "monitor/node/proc_file.h"
#include "monitor/node/signal_wire.h"
#include "monitor/paging/program_faultfd.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/reserved_range.h"
#include "monitor/tracee/sealed_memory.h"
#include "syscall/table.h"

namespace gpr::home {

namespace {
constexpr unsigned arguments_of_call = 6;
// The most bytes that are fetched in advance for a raw call; its page faults fetch the rest.
constexpr uint64_t prefetch_limit = 64ULL << 20;
// How often a call that must end is interrupted again, in case it had not begun.
constexpr std::chrono::milliseconds interrupts_every{1};

// Whether a write takes its data from memory that shows the same file: then the kernel may
// overwrite data that it has yet to write.
bool writes_what_it_shows(AddressSpace& space, const ForwardedCall& call) {
    const Transfer& transfer = details_of(call.number).transfer;
    if (!transfer.writes || transfer.vector) return false;
    uint64_t from = call.given[1], size = call.given[2];
    const Mapping* m = space.find({from});
    const std::vector<ObjectId>& files = call.use.files;
    return m && m->shared && m->range.contains({from + size - 1}) &&
           std::find(files.begin(), files.end(), m->object) != files.end();
}

// Calls that can be answered without the kernel.
std::optional<int64_t> answer_without_kernel(const HomeProcess& process, HomeThread& thread,
                                             uint32_t number, const SyscallArguments& args) {
    if (number == SYS_rseq) return register_rseq(thread.rseq, args.data());
    if (asks_for_seccomp_mode(number, args.data())) return Filters::seccomp_mode(thread);
    if (auto answer = answer_about_reserved(number, args.data())) return answer;
    return answer_about_sealed(process.fragment->space, number, args.data(), process.break_end);
}

}  // namespace

Task<void> Calls::serve_call(Frame frame, NodeId from) {
    // Changes of mappings that the caller made before are applied before its call.
    { auto guard = co_await home_.metadata.lock(); }
    co_await home_.loans.end_loans();
    auto call = frame->session().getCall();
    if (call.getArgs().size() != arguments_of_call) {  // the code below relies on six
        home_.acceptors.at(from).link.close("a system call came without its six arguments");
        co_return;
    }
    HomeThread* thread = home_.find_thread(call.getPid(), call.getTid());
    if (!thread || !thread->stub || thread->node != from) co_return;
    HomeProcess& process = *thread->process;
    thread->counts.calls++;
    thread->counts.note_waited(call.getWaited());
    thread->counts.stopped += call.getStopped();
    thread->counts.call_since = Clock::now();
    thread->wait = call.getWait();
    thread->interrupted = false;
    // A signal that was passed on before the call is delivered first.
    if (call.getRepeatable() && thread->passed) {
        reply(*thread, -trace::restart_nointr);
        co_return;
    }
    if (call.getNumber() == SYS_exit) {
        thread->advance(HomeThread::Life::made_last_call);
        co_await home_.passed_signals.give_to_others(*thread);
    }
    SyscallArguments args{};
    for (unsigned i = 0; i < arguments_of_call; i++) args[i] = call.getArgs()[i];
    const Delegations::Served serves{process.pid, call.getNumber(), args};
    const Delegations::Service service(home_.delegations.served(), serves);
    co_await home_.delegations.before_call(process.pid, call.getNumber(), args);
    if (home_.find_thread(call.getPid(), call.getTid()) != thread || thread->stub->dead()) {
        co_return;
    }
    if (installs_filter(call.getNumber(), args.data())) {
        co_await home_.filters.install_for(process, *thread, call.getNumber(), args);
        co_return;
    }
    auto answer = answer_without_kernel(process, *thread, call.getNumber(), args);
    if (!answer && home_.ends.is_helper_named(call.getNumber(), args)) answer = -ESRCH;
    if (answer) {
        reply(*thread, *answer);
        co_return;
    }
    if (call.getNumber() == SYS_ptrace || waits_for_children(call.getNumber())) {
        const bool answered = co_await answer_tracer(*thread, call.getNumber(), args);
        if (answered) co_return;
    }
    home_.local_calls.note_modes(*thread, call.getNumber(), args.data(), true);
    // The acceptor's kernel clears the tid when the thread ends.
    if (call.getNumber() == SYS_set_tid_address) thread->clear_tid = 0;
    bool elsewhere = home_.acceptors.are_several() && call.getFile() == 0 &&
                     co_await home_.acceptor_files.is_for_another(*thread, call.getNumber(), args);
    if (!thread->stub || thread->stub->dead()) co_return;
    if (elsewhere) {
        send_elsewhere(*thread);
    } else {
        co_await make_call(process, *thread, frame, args);
    }
}

// A call of one that traces others, or asks to. False: it is made as always.
Task<bool> Calls::answer_tracer(HomeThread& thread, uint32_t number, SyscallArguments args) {
    Tracing& tracing = home_.debugging.tracing();
    const pid_t pid = thread.process->pid, tid = thread.tid;
    std::optional<int64_t> result;
    if (number == SYS_ptrace) {
        result = co_await tracing.calls.serve_forwarded(pid, tid, args);
    } else {
        result = co_await tracing.waits.serve_forwarded(pid, tid, number, args);
    }
    if (result && home_.find_thread(pid, tid) == &thread) reply(thread, *result);
    co_return result.has_value();
}

// Neither home nor the thread's acceptor has what the call is about: the thread goes home, and from
// there to the acceptor that has it.
void Calls::send_elsewhere(HomeThread& thread) {
    thread.wait = 0;
    FrameBuilder frame;
    auto done = frame.session().initCallDone();
    done.setPid(thread.process->pid);
    done.setTid(thread.tid);
    done.setResult(-trace::restart_nointr);
    done.setElsewhere(true);
    home_.acceptors.at(thread.node).link.send(frame, Priority::urgent);
}

// Passes the call to the part responsible for it; an ordinary call is made by the thread's shadow.
Task<void> Calls::make_call(HomeProcess& process, HomeThread& thread, Frame frame,
                            SyscallArguments args) {
    const uint32_t number = frame->session().getCall().getNumber();
    const Handlers handlers = handlers_of(number);
    if (memory_call_of(number) != MemoryCall::none) {
        co_await make_memory_call(process, thread, frame, args);
    } else if (handlers.there == AtAcceptor::clone) {
        if (home_.debugging.tracing().calls.brings_home_for_clone(thread, args[0])) co_return;
        if (args[0] & CLONE_THREAD) {
            co_await home_.births.spawn_thread(process, thread, frame);
        } else {
            co_await home_.births.spawn_process(process, thread, frame);
        }
    } else if (handlers.here == AtHome::faultfd) {
        reply(thread, co_await home_.faultfds.make_faultfd(process, *thread.stub, args[0]));
    } else if (handlers.here == AtHome::ioctl && is_faultfd_ioctl(args[1])) {
        auto faultfd = home_.faultfds.faultfd_of(process.pid, static_cast<int>(args[0]));
        if (!faultfd) {
            co_await run_call(process, thread, frame);
            co_return;
        }
        const auto command = static_cast<uint32_t>(args[1]);
        reply(thread, co_await home_.faultfds.ioctl_faultfd(process, faultfd, command, {args[2]}));
    } else if (handlers.here == AtHome::ioctl &&
               home_.proc_files.queries.is_query(process.pid, args[0], args[1])) {
        reply(thread, co_await home_.proc_files.queries.answer(process, args));
    } else {
        co_await run_call(process, thread, frame);
    }
}

Task<void> Calls::make_memory_call(HomeProcess& process, HomeThread& thread, Frame frame,
                                   SyscallArguments args) {
    auto call = frame->session().getCall();
    MemoryCalls& memory = home_.memory_calls;
    switch (memory_call_of(call.getNumber())) {
        case MemoryCall::map: co_await memory.map_for(process, thread, frame); co_return;
        case MemoryCall::lock:
        case MemoryCall::lock_all: {
            std::shared_ptr<StubThread> stub = thread.stub;
            auto guard = co_await home_.metadata.lock();
            if (stub->dead()) co_return;
            reply(thread, memory.lock_memory(process, thread.tid, call.getNumber(), args));
            co_return;
        }
        case MemoryCall::unmap:
        case MemoryCall::protect:
        case MemoryCall::move:
        case MemoryCall::remap_file:
        case MemoryCall::detach:
            co_await memory.change_memory_for(process, thread, frame);
            co_return;
        case MemoryCall::set_break: co_await memory.brk_for(process, thread, frame); co_return;
        case MemoryCall::attach:
            co_await home_.shared_memory.attach_for(process, thread, frame);
            co_return;
        case MemoryCall::advise:
            if (args[2] == MADV_DONTNEED || args[2] == MADV_DONTNEED_LOCKED) {
                co_await home_.file_copies.discard_for(process, thread, frame);
            } else if (is_guard_advice(call.getNumber(), args.data())) {
                co_await memory.change_memory_for(process, thread, frame);
            } else {
                co_await run_call(process, thread, frame);
            }
            co_return;
        case MemoryCall::seal: {
            std::array<uint64_t, 3> what{args[0], args[1], args[2]};
            int64_t result = co_await home_.memory_gate.seal(process.pid, what);
            if (home_.find_thread(call.getPid(), call.getTid()) == &thread) reply(thread, result);
            co_return;
        }
        default: co_await run_call(process, thread, frame); co_return;
    }
}

Task<void> Calls::run_call(HomeProcess& process, HomeThread& thread, Frame frame) {
    auto parsed = ForwardedCall::parse(*frame);
    if (!parsed) {
        home_.acceptors.at(thread.node).link.close(parsed.error().message());
        co_return;
    }
    ForwardedCall call = std::move(*parsed);
    call.fragment = process.fragment;
    call.shadow = thread.stub;
    bool answered = co_await home_.fd_names.answer(process, thread, call);
    if (answered) co_return;
    co_await prepare_call(process, call);
    auto guard = co_await call.shadow->lock();
    AsyncMutex::Guard changing(nullptr);
    if (call.action) {
        changing = co_await home_.signal_actions.actions_of(process).lock();
        SignalActions::before_action(process, *call.action);
    }
    place_call(process, call);
    auto asked = home_.lookups.ask(process, thread, call);
    co_await home_.contended_memory.meet_external_sharers(true);
    if (call.shadow->dead()) co_return;
    thread.repeatable = call.repeatable;
    if (thread.repeatable && thread.passed) {  // passed on since the call began
        reply(thread, -trace::restart_nointr);
        co_return;
    }
    // If no reply is wanted, the acceptor has made the call itself.
    const NodeId knows = call.wants_reply ? directory_node : thread.node;
    if (call.action) home_.signal_actions.announce_action(process, *call.action, knows);
    const bool made = asked && home_.lookups.make(*asked, process.pid, call);
    if (!made) co_await make_forwarded(process, thread, call);
    if (call.action && call.made.result == 0) SignalActions::after_action(process, *call.action);
    if (call.made.result == 0) {
        home_.local_calls.tell_mirrored(process, call.number, call.given.data(), thread.node);
    }
    if (call.shadow->dead() || !call.wants_reply) co_return;
    std::vector<std::byte> out;
    if (call.marshalled) {
        co_await note_made(process, thread, call);
        out = call.gather();
    }
    if (call.number == SYS_mincore && call.made.result == 0) {
        co_await home_.layouts.add_resident_elsewhere(call.fragment, call.given);
    }
    if (call.number == SYS_madvise && call.made.result == 0) {
        co_await home_.forks_in_place.note_fork_advice(process, call.given);
    }
    co_await home_.shared_memory.after_use(call.use);
    co_await home_.contended_memory.meet_external_sharers(false);
    if (call.shadow->dead()) co_return;
    auto opened = co_await home_.delegations.offer(process, thread, call);
    if (call.shadow->dead()) co_return;
    if (!call.sizes.empty()) co_await home_.truncation.after_truncation(std::move(call.sizes));
    guard.release();
    co_await home_.fd_names.after_call(process, call);
    if (call.shadow->dead()) co_return;
    auto known = home_.lookups.offer(std::move(asked), process, thread, call, out);
    reply(thread, call.made.result, out, {opened.get(), known.get()});
}

// Fetches the memory that the call uses, and notes what must be known before it is made.
Task<void> Calls::prepare_call(HomeProcess& process, ForwardedCall& call) {
    if (call.marshalled && call.number == SYS_rt_sigaction) {
        call.action = SignalActions::action_of(*call.marshalled);
    }
    if (!call.marshalled) {
        uint64_t total = 0;
        uint64_t left_to_fill = most_to_move(process.pid, call, true);
        uint64_t left_to_read = most_to_move(process.pid, call, false);
        for (PageNeed need : raw_ranges(call.number, call.given)) {
            uint64_t& left = need.write ? left_to_fill : left_to_read;
            need.range.end = std::min(need.range.end, need.range.begin + left);
            if (need.range.empty()) continue;
            left -= need.range.size();
            total += need.range.size();
            if (total > prefetch_limit) break;
            co_await home_.pager.supply.acquire(*call.fragment, need.range,
                                                need.write ? Access::write : Access::read);
        }
    }
    call.use = home_.shared_memory.shared_use(process, call.number, call.given);
    // It may use any shared memory through pointers that we do not follow.
    bool all = call.reaches_anywhere() && !home_.policy.mixed() &&
               home_.shared_memory.anyone_writes_shared();
    if (all) call.use = home_.shared_memory.use_of_everything();
    co_await home_.shared_memory.before_use(call.use);
    call.sizes = home_.truncation.sizes_before(process, call.number, call.given);
    if (home_.memory_files.in_use()) {
        co_await home_.memory_files.bring_for_memory_file(process, call.number, call.given);
    }
}

// The shadow must be locked.
void Calls::place_call(HomeProcess& process, ForwardedCall& call) {
    call.place();
    if (!call.marshalled) return;
    if (writes_what_it_shows(call.fragment->space, call)) call.made.args[1] = call.given[1];
    home_.contended_memory.note_given(process, call);
    auto limited = limited_by(call.number, call.made.args);
    HomeProcess* of = !limited ? nullptr : *limited == 0 ? &process : home_.find_process(*limited);
    if (of) call.memory_limit = MemoryLimitCall::widen(*of, call);
}

// Now; or earlier, if the thread's process has moved and the thread makes its call again. Then it
// is interrupted at its time, as if this kernel had interrupted it before.
static Clock::time_point beginning_of(HomeThread& thread, const Call& call) {
    const auto now = Clock::now();
    auto& before = thread.resumed_wait;
    if (!before) return now;
    user_regs_struct regs{};
    regs.orig_rax = call.number;
    regs.rax = static_cast<uint64_t>(-EINTR);
    regs.rdi = call.args[0], regs.rsi = call.args[1], regs.rdx = call.args[2];
    regs.r10 = call.args[3], regs.r8 = call.args[4], regs.r9 = call.args[5];
    std::optional<ResumedWait> again;
    if (is_interrupted_wait(regs)) {
        again = ResumedWait::begin(thread.process->pid, thread.tid, regs, now);
    }
    const bool is_limited = again && again->ends() != Clock::time_point::max();
    if (is_limited && before->ends() < again->ends()) return now - (again->ends() - before->ends());
    before.reset();
    return now;
}

Task<void> Calls::make_forwarded(HomeProcess& process, HomeThread& thread, ForwardedCall& call) {
    StubThread& shadow = *call.shadow;
    bool waits = waits_for_children(call.number);
    bool executes = call.number == SYS_execve || call.number == SYS_execveat;
    std::vector<Call> calls{call.made};
    calls[0].number |= GPR_CALL_OF_PROGRAM;
    if (waits || call.number == SYS_unshare) {
        auto shares_its_memory = [&](const auto& p) {
            return p.second->shares_memory_with == &process;
        };
        bool has_vfork_children =
            std::any_of(home_.processes.begin(), home_.processes.end(), shares_its_memory);
        hide_helpers(process, has_vfork_children, calls[0]);
    }
    if (executes) process.executing = true;
    if (call.number == SYS_exit_group) process.group_exit = true;
    if (call.wants_reply) thread.begin(HomeThread::Business::call);
    thread.call_began = beginning_of(thread, call.made);
    std::optional<ExternalSharers::Opening> opening;
    if (home_.contended_memory.external_sharers() && call.opens_by_name()) {
        opening.emplace(*home_.contended_memory.external_sharers());
    }
    const auto sent = home_.passed_signals.about_to_send(call.number, call.given);
    if (auto result = co_await home_.cpu_timing.timer_call_in_bounce(process, call)) {
        call.made.result = *result;
        if (shadow.dead()) co_return;
    } else {
        if (waits) {
            co_await wait_without(home_.orphaned_helpers, shadow, calls);
            Tracing& tracing = home_.debugging.tracing();
            const bool woken = tracing.waits.was_woken(thread.tid);
            // The signal of a tracee's stop may come before that wakes the wait.
            const bool can_be_answered =
                woken || std::ranges::any_of(tracing.tracees_of(process.pid),
                                             [](const auto* one) { return one->has_news(); });
            if (can_be_answered && calls[0].result == -EINTR) {
                calls[0].result = -trace::restart_nointr;
            }
        } else {
            co_await shadow.run_locked(calls);
            const bool tries_again = calls[0].result == -EAGAIN && call.opens_by_name();
            if (tries_again) co_await home_.delegations.open_again(shadow, calls);
        }
        call.made.result = calls[0].result;
        if (thread.resumed_wait) {
            call.made.result = result_of_repeated(call.number, call.made.result);
        }
        if (sent && call.made.result == 0) co_await home_.passed_signals.pass_on_sent(*sent);
    }
    if (executes && !shadow.dead()) process.executing = false;
    thread.end(HomeThread::Business::call);
    thread.resumed_wait.reset();
}

// Records what the call did, and corrects results of which this kernel has only home's part.
Task<void> Calls::note_made(HomeProcess& process, HomeThread& thread, ForwardedCall& call) {
    bool opened = call.opens_by_name() && call.made.result >= 0;
    if (opened && may_show_process(call.name())) {
        co_await home_.memory_files.note_opened(process, *call.shadow,
                                                static_cast<int>(call.made.result));
    }
    if (auto tells = usage_call(call.number, call.given.data());
        tells && home_.acceptors.are_several()) {
        auto told = co_await home_.remote_usage.ask_usage(process.pid, thread.tid, *tells, false,
                                                          thread.node);
        call.used_at_others = told.used;
        if (call.shadow->dead()) co_return;
    }
    if (call.number == SYS_memfd_create && call.made.result >= 0) {
        home_.contended_memory.note_made(process, static_cast<int>(call.made.result));
    }
    home_.remote_usage.add_remote_usage(thread, call);
    if (call.memory_limit && call.memory_limit->show(call)) {
        HomeProcess* of = home_.find_process(call.memory_limit->pid);
        if (of) of->memory_limits[call.memory_limit->resource] = *call.memory_limit->given;
    }
    if (call.made.result == 0) {
        co_await home_.main_stack.note_limit(process, call.number, call.given.data());
    }
    home_.cpu_timing.note_timer_in_bounce(thread, call);
    co_await home_.aio.note_aio_in_bounce(process, call);
    if (call.made.result == 0) co_await home_.affinity.note_made(process, thread, call);
}

// For a call that waits on both nodes: the acceptor's part has ended, so the part here must end,
// too. It is interrupted repeatedly, because it may be only about to begin.
Task<void> Calls::interrupt_call(Frame frame) {
    { auto guard = co_await home_.metadata.lock(); }
    auto interrupt = frame->session().getInterrupt();
    auto find = [&]() -> HomeThread* {
        HomeThread* thread = home_.find_thread(interrupt.getPid(), interrupt.getTid());
        return thread && thread->wait != 0 && thread->wait == interrupt.getWait() ? thread
                                                                                  : nullptr;
    };
    while (HomeThread* thread = find()) {
        thread->interrupted = true;
        if (thread->is_in(HomeThread::Business::call)) trace::interrupt(thread->tid);
        OneShot<bool> later(home_.loop);
        home_.loop.after(interrupts_every, [&later] { later.set(true); });
        co_await later;
    }
}

void Calls::reply(HomeThread& thread, int64_t result, std::span<const std::byte> out,
                  const Promises& promises) {
    // Nobody waits any more: the thread has ended, or its id belongs to a new image.
    if (!thread.remote() || !thread.stub || thread.stub->dead()) return;
    thread.wait = 0;
    thread.counts.served_ns =
        static_cast<uint64_t>((Clock::now() - thread.counts.call_since).count());
    home_.stats.calls.note(thread.counts.served_ns);
    FrameBuilder frame;
    auto done = frame.session().initCallDone();
    done.setPid(thread.process->pid);
    done.setTid(thread.tid);
    done.setResult(result);
    if (thread.passed && std::exchange(thread.passed->with_answer, false)) {
        done.setSignal(signal_bytes(thread.passed->info));
        done.setSerial(thread.passed->serial);
    }
    if (!out.empty()) frame.add_raw(out);
    promises.put(done, frame);
    home_.acceptors.at(thread.node).link.send(frame, Priority::urgent);
}

}  // namespace gpr::home
