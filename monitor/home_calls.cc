// System calls that a thread at an acceptor makes on what lives here: its shadow makes them.

#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstring>

#include "monitor/helper_calls.h"
#include "monitor/home_session.h"
#include "monitor/memory_limit.h"
#include "monitor/reserved_range.h"
#include "monitor/signal_wire.h"
#include "syscall/table.h"

namespace gpr {

namespace {
// Pages of a raw call that are fetched before it runs; beyond that it faults as it goes.
constexpr uint64_t prefetch_limit = 64ULL << 20;
constexpr uint64_t madv_dontneed_locked = 24;  // Linux 5.18
// A call that is to end is stopped again, if it had not begun.
constexpr std::chrono::milliseconds interrupts_every{1};

// What is written is shown by memory that shows the same file: as the kernel goes along it may
// change what it has yet to write.
bool writes_what_it_shows(AddressSpace& space, uint64_t number, const SyscallArguments& args,
                          const std::vector<ObjectId>& files) {
    if (number != SYS_write && number != SYS_pwrite64) return false;
    const Mapping* m = space.find({args[1]});
    return m && m->shared && m->range.contains({args[1] + args[2] - 1}) &&
           std::find(files.begin(), files.end(), m->object) != files.end();
}
}  // namespace

Task<void> HomeSession::serve_call(Frame frame) {
    // Mappings that the caller made before are applied before its call.
    { auto guard = co_await metadata_.lock(); }
    co_await end_loans();
    auto call = frame->session().getCall();
    HomeThread* thread = find_thread(call.getPid(), call.getTid());
    if (!thread || !thread->stub) co_return;
    HomeProcess& process = *thread->process;
    thread->wait = call.getWait();
    thread->interrupted = false;
    // The signal that was passed on before came first.
    if (call.getRepeatable() && thread->passed) {
        reply(*thread, -trace::restart_nointr);
        co_return;
    }
    if (call.getNumber() == SYS_exit) {
        thread->exits = true;
        co_await give_to_others(*thread);
    }
    std::array<uint64_t, 6> args{};
    for (unsigned i = 0; i < 6 && i < call.getArgs().size(); i++) args[i] = call.getArgs()[i];
    if (installs_filter(call.getNumber(), args.data())) {
        co_await install_for(process, *thread, call.getNumber(), args);
        co_return;
    }
    if (asks_for_seccomp_mode(call.getNumber(), args.data())) {
        reply(*thread, seccomp_mode(*thread));
        co_return;
    }
    if (auto answer = answer_about_reserved(call.getNumber(), args.data())) {
        reply(*thread, *answer);
        co_return;
    }
    if (call.getNumber() == SYS_prctl) note_prctl(*thread, args.data(), true);
    if (call.getNumber() == SYS_set_tid_address) thread->clear_tid = 0;  // the acceptor clears it
    switch (call.getNumber()) {
        case SYS_clone:
        case SYS_clone3:
        case SYS_fork:
        case SYS_vfork:
            if (args[0] & CLONE_THREAD) {
                co_await spawn_thread(process, *thread, frame);
            } else {
                co_await spawn_process(process, *thread, frame);
            }
            co_return;
        case SYS_mmap: co_await map_for(process, *thread, frame); co_return;
        case SYS_mlock:
        case SYS_mlock2:
        case SYS_mlockall: {
            auto guard = co_await metadata_.lock();
            reply(*thread, lock_memory(process, thread->tid, call.getNumber(), args));
            co_return;
        }
        case SYS_mremap: co_await change_memory_for(process, *thread, frame); co_return;
        case SYS_brk: co_await brk_for(process, *thread, frame); co_return;
        case SYS_shmat: co_await attach_for(process, *thread, frame); co_return;
        case SYS_madvise:
            if (args[2] == MADV_DONTNEED || args[2] == madv_dontneed_locked) {
                co_await discard_for(process, *thread, frame);
                co_return;
            }
            co_await run_call(process, *thread, frame, !call.getNoReply());
            co_return;
        case SYS_shmdt: co_await detach_for(process, *thread, frame); co_return;
        case SYS_remap_file_pages: co_await remap_pages_for(process, *thread, frame); co_return;
        case SYS_userfaultfd:
            reply(*thread, co_await make_faultfd(process, *thread->stub, args[0]));
            co_return;
        case SYS_ioctl:
            if (is_faultfd_ioctl(args[1])) {
                if (auto faultfd = faultfd_of(process.pid, static_cast<int>(args[0]))) {
                    auto command = static_cast<uint32_t>(args[1]);
                    reply(*thread, co_await ioctl_faultfd(process, faultfd, command, {args[2]}));
                    co_return;
                }
            }
            co_await run_call(process, *thread, frame, !call.getNoReply());
            co_return;
        default: co_await run_call(process, *thread, frame, !call.getNoReply()); co_return;
    }
}

Task<void> HomeSession::run_call(HomeProcess& process, HomeThread& thread, Frame frame,
                                 bool wants_reply) {
    auto request = frame->session().getCall();
    std::shared_ptr<Fragment> fragment = process.fragment;
    std::shared_ptr<StubThread> kept = thread.stub;
    StubThread& stub = *kept;
    std::vector<Call> calls(1);
    calls[0].number = request.getNumber();
    for (unsigned i = 0; i < 6 && i < request.getArgs().size(); i++) {
        calls[0].args[i] = request.getArgs()[i];
    }
    bool marshalled = !frame->raw().empty();
    MarshalledCall call;
    std::optional<SignalAction> action;
    if (marshalled) {
        auto parsed = parse_call(frame->raw());
        if (!parsed) {
            link_.close(parsed.error().message());
            co_return;
        }
        call = std::move(*parsed);
        if (request.getNumber() == SYS_rt_sigaction) action = action_of(call);
    } else {
        SyscallArguments args;
        std::copy(calls[0].args, calls[0].args + 6, args.begin());
        uint64_t total = 0;
        for (const PageNeed& need : raw_ranges(request.getNumber(), args)) {
            total += need.range.size();
            if (total > prefetch_limit) break;
            co_await pager_.acquire(*fragment, need.range,
                                    need.write ? Access::write : Access::read);
        }
    }
    SyscallArguments given;
    std::copy(calls[0].args, calls[0].args + 6, given.begin());
    SharedUse use = shared_use(process, request.getNumber(), given);
    // A pointer that we do not follow may lead to any of it, behind our back.
    const Row* row = find_row(request.getNumber());
    bool raw = !marshalled || (row && row->points_anywhere(given));
    if (raw && !policy_.mixed() && anyone_writes_shared()) use = use_of_everything();
    co_await before_use(use);
    auto sizes = sizes_before(process, request.getNumber(), given);
    if (memory_files_) co_await bring_for_memory_file(process, request.getNumber(), given);
    auto guard = co_await stub.lock();
    AsyncMutex::Guard changing(nullptr);
    if (action) {
        before_action(process, *action);
        changing = co_await actions_of(process).lock();
    }
    auto bounce = fragment->mailbox().bounce(stub.slot());
    Address bounce_at = Mailbox::bounce_address(stub.slot());
    std::optional<MemoryLimitCall> memory_limit;
    if (marshalled) {
        auto args = place(call, bounce_at, bounce);
        std::copy(args.begin(), args.end(), calls[0].args);
        bool itself = writes_what_it_shows(fragment->space, calls[0].number, given, use.files);
        if (itself) calls[0].args[1] = given[1];
        note_given(process, calls[0], bounce_at, bounce);
        auto limited = limited_by(calls[0].number, calls[0].args);
        HomeProcess* of = !limited ? nullptr : *limited == 0 ? &process : find_process(*limited);
        if (of) memory_limit = MemoryLimitCall::widen(*of, calls[0], bounce_at, bounce);
    }
    co_await meet_outsiders(true);
    if (stub.dead()) co_return;
    calls[0].number |= GPR_CALL_OF_PROGRAM;
    bool waits = waits_for_children(request.getNumber());
    if (waits || request.getNumber() == SYS_unshare) {
        auto is_guest = [&](const auto& p) { return p.second->shares_memory_with == &process; };
        bool has_guests = std::any_of(processes_.begin(), processes_.end(), is_guest);
        hide_helpers(process, has_guests, calls[0]);
    }
    bool executes = request.getNumber() == SYS_execve || request.getNumber() == SYS_execveat;
    if (executes) process.executing = true;
    if (request.getNumber() == SYS_exit_group) process.group_exit = true;
    thread.repeatable = request.getRepeatable();
    if (thread.repeatable && thread.passed) {  // since we began
        reply(thread, -trace::restart_nointr);
        co_return;
    }
    thread.in_call = wants_reply;
    std::optional<Outsiders::Opening> opening;
    if (outsiders_ && row && row->opens_by_name()) opening.emplace(*outsiders_);
    if (auto result = co_await timer_call_in_bounce(process, calls[0], bounce_at, bounce)) {
        calls[0].result = *result;
        if (stub.dead()) co_return;
    } else if (waits) {
        co_await wait_without(orphaned_helpers_, stub, calls);
    } else {
        co_await stub.run_locked(calls);
    }
    opening.reset();
    if (executes && !stub.dead()) process.executing = false;
    if (action && calls[0].result == 0) after_action(process, *action);
    thread.in_call = false;
    if (stub.dead() || !wants_reply) co_return;
    std::vector<std::byte> out;
    if (marshalled) {
        std::string_view name{reinterpret_cast<const char*>(call.in_bytes.data()),
                              call.in_bytes.size()};
        bool opened = row && row->opens_by_name() && calls[0].result >= 0;
        if (opened && may_show_process(name)) {
            co_await note_opened(process, stub, static_cast<int>(calls[0].result));
        }
        add_remote_cpu(process, calls[0], bounce_at, bounce);
        if (memory_limit && memory_limit->show(calls[0], bounce_at, bounce)) {
            HomeProcess* of = find_process(memory_limit->pid);
            if (of) of->memory_limit = memory_limit->given;
        }
        note_timer_in_bounce(thread, calls[0], bounce_at, bounce);
        co_await note_aio_in_bounce(process, calls[0], bounce_at, bounce);
        if (request.getNumber() == SYS_sched_setaffinity && calls[0].result == 0) {
            note_affinity(thread, call);
        }
        out = collect(call, calls[0].result, bounce);
    }
    if (request.getNumber() == SYS_madvise && calls[0].result == 0) {
        co_await note_fork_advice(process, given);
    }
    co_await after_use(use);
    co_await meet_outsiders(false);
    if (stub.dead()) co_return;
    if (!sizes.empty()) co_await after_truncation(std::move(sizes));
    reply(thread, calls[0].result, out);
}

// The other half of the wait is over, at the acceptor. If the call has not begun, it soon will.
Task<void> HomeSession::interrupt_call(Frame frame) {
    { auto guard = co_await metadata_.lock(); }
    auto interrupt = frame->session().getInterrupt();
    auto find = [&]() -> HomeThread* {
        HomeThread* thread = find_thread(interrupt.getPid(), interrupt.getTid());
        return thread && thread->wait != 0 && thread->wait == interrupt.getWait() ? thread
                                                                                  : nullptr;
    };
    while (HomeThread* thread = find()) {
        thread->interrupted = true;
        if (thread->in_call) trace::interrupt(thread->tid);
        OneShot<bool> later(loop_);
        loop_.after(interrupts_every, [&later] { later.set(true); });
        co_await later;
    }
}

// It stands in a ptrace stop.
void HomeSession::end_interrupted_call(const HomeThread& thread) {
    auto regs = trace::registers(thread.tid);
    bool waited = regs && static_cast<long>(regs->orig_rax) >= 0 && regs->orig_rax != GPR_PARK &&
                  trace::is_restart(static_cast<long>(regs->rax));
    if (!waited) return;
    regs->rax = static_cast<uint64_t>(-EINTR);
    regs->orig_rax = ~0UL;
    trace::set_registers(thread.tid, *regs);
}

void HomeSession::reply(HomeThread& thread, int64_t result, std::span<const std::byte> out) {
    thread.wait = 0;
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
    link_.send(frame, Priority::urgent);
}

}  // namespace gpr
