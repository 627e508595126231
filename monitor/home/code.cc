// Threads cross where code is missing: out of the program at home into the acceptor, and back.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "base/log.h"
#include "monitor/home/session.h"
#include "monitor/node/robust_list.h"
#include "monitor/paging/neutral_code.h"
#include "monitor/paging/page_wire.h"
#include "monitor/tracee/alt_stack.h"
#include "monitor/tracee/extended_state.h"
#include "monitor/tracee/interrupted_call.h"
#include "monitor/tracee/pending_fault_raw.h"
#include "monitor/tracee/stub_signals.h"

namespace gpr {

namespace {
// One that is to stop does so within microseconds, unless it waits for its CPU or the kernel waits
// for a page in its name.
constexpr std::chrono::milliseconds stops_in{10};

Result<Fd> copy_of(Fragment& fragment, Range range) {
    Fd fd(memfd_create("gpr-text", MFD_CLOEXEC));
    if (!fd) return fail(errno, "cannot keep the program's code");
    constexpr uint64_t step = 256 * page_size;
    for (uint64_t done = 0; done < range.size(); done += step) {
        uint64_t bytes = std::min(step, range.size() - done);
        auto part = fragment.peek(range.begin + done, bytes / page_size);
        if (pwrite(fd.get(), part.bytes.data(), bytes, static_cast<off_t>(done)) !=
            static_cast<ssize_t>(bytes)) {
            return fail(errno, "cannot keep the program's code");
        }
    }
    return fd;
}

// Whether the memory is what is in the file: only an administrator may ask which file it is of.
bool shows(Fragment& fragment, Range range, int file, uint64_t offset) {
    constexpr uint64_t step = 256 * page_size;
    std::vector<std::byte> bytes(step);
    for (uint64_t done = 0; done < range.size(); done += step) {
        uint64_t size = std::min(step, range.size() - done);
        ssize_t got = pread(file, bytes.data(), size, static_cast<off_t>(offset + done));
        if (got <= 0) return done > 0;  // beyond the end
        auto part = fragment.peek(range.begin + done, size / page_size);
        if (std::memcmp(part.bytes.data(), bytes.data(), static_cast<size_t>(got)) != 0) {
            return false;
        }
    }
    return true;
}
}  // namespace

std::string HomeSession::executable_of(pid_t pid) {
    std::error_code ignored;
    return std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), ignored).string();
}

// The file itself serves untouched pages; if it can no longer be reached, a copy does: false.
Result<bool> HomeSession::keep_text(const HomeProcess& process, Mapping& m, const std::string& path,
                                    uint64_t offset) {
    std::string full = fmt::format("/proc/{}/root{}", process.pid, path);
    Fd file(open(full.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    struct stat by_path = {}, mapped = {};
    std::string link = fmt::format("/proc/{}/map_files/{:x}-{:x}", process.pid, m.range.begin.value,
                                   m.range.end.value);
    bool known = file && fstat(file.get(), &by_path) == 0 && stat(link.c_str(), &mapped) == 0;
    bool same = known ? by_path.st_ino == mapped.st_ino && by_path.st_dev == mapped.st_dev
                      : file && shows(*process.fragment, m.range, file.get(), offset);
    m.content_offset = same ? offset : 0;
    if (!same) {
        GPR_TRY(file, copy_of(*process.fragment, m.range));
    }
    m.content = std::make_shared<Fd>(std::move(file));
    return same;
}

Task<Result<void>> HomeSession::trap_code(HomeProcess& process, Mapping& m, std::string path,
                                          uint64_t offset) {
    Fragment& fragment = *process.fragment;
    auto kept = keep_text(process, m, path, offset);
    if (!kept) co_return tl::make_unexpected(kept.error());
    note_copied(process, m);
    auto taken = co_await take_code_away(fragment, m);
    if (!taken) co_return taken;
    spdlog::debug("code of {} at {:#x} runs at the acceptor", path, m.range.begin.value);
    co_return Result<void>{};
}

// Its content is known, and stays so.
Task<Result<void>> HomeSession::take_code_away(Fragment& fragment, Mapping& m) {
    int64_t made = co_await fragment.executor().call(
        SYS_mmap, m.range.begin.value, m.range.size(), static_cast<uint64_t>(m.prot),
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, ~0UL, 0);
    auto checked = from_kernel(made, "cannot take the code of a library away");
    if (!checked) co_return tl::make_unexpected(checked.error());
    auto registered = fragment.register_range(m.range);
    if (!registered) co_return registered;
    m.backing = Backing::anonymous;
    m.registered = m.trapped = true;
    m.code = CodeClass::remote;
    co_return Result<void>{};
}

CodeClass HomeSession::class_of(const std::string& path, const HomeProcess& process) {
    const SplitRule* rule = policy_.rule_for(path);
    if (rule) rule_use_.note(*rule);
    if (rule_use_.note_code(path)) {
        spdlog::info("{} is mapped: {}", path,
                     rule                        ? rule_text(*rule)
                     : policy_.begins_remotely() ? "all"
                                                 : "no rule names it");
    }
    CodeClass code = policy_.classify(path, process.executable);
    if (code == CodeClass::remote) {  // with all its functions
        for (const SplitRule& each : policy_.function_rules(path)) rule_use_.note(each);
    }
    return code;
}

Task<Result<void>> HomeSession::place_code(HomeProcess& process, Mapping& m, std::string path,
                                           uint64_t offset) {
    bool text = m.file && !m.shared && (m.prot & PROT_EXEC) && !(m.prot & PROT_WRITE);
    if (!text) co_return Result<void>{};
    m.code = class_of(path, process);
    if (m.code == CodeClass::neutral) co_return place_functions(process, m, path, offset);
    if (m.code != CodeClass::remote) co_return Result<void>{};
    co_return co_await trap_code(process, m, std::move(path), offset);
}

// Stops a thread that runs the program here. Nothing: it got a signal first, and goes on; what it
// did faults or is called again.
Task<std::optional<ThreadContext>> HomeSession::stop(HomeThread& thread) {
    if (thread.awaited || thread.remote || thread.ending) co_return std::nullopt;
    trace::interrupt(thread.tid);
    WaitStatus status = co_await next_stop(thread, true);
    if (status.ended()) co_return std::nullopt;
    if (status.kind != WaitStatus::Kind::trap_stop) {
        on_wait(thread.tid, status);
        co_return std::nullopt;
    }
    auto context = capture_context(thread.tid);
    if (!context) co_return std::nullopt;
    bool in_stub = context->regs.rip >> 32 == GPR_STUB_HIGH_WORD;  // still on its way back
    if (in_stub || has_fault_pending(thread.tid)) {
        trace::resume(thread.tid);
        co_return std::nullopt;
    }
    thread.masked = false;  // it has left its stub since, with its own mask
    co_return std::move(*context);
}

// The stopped thread, whose context this is, goes on in its stub. False: there is no room for it.
bool HomeSession::divert(HomeThread& thread, const ThreadContext& context) {
    HomeProcess& process = *thread.process;
    if (!thread.stub) {
        auto slot = process.fragment->mailbox().allocate();
        if (!slot) {
            abandon(slot.error().message());
            return false;
        }
        thread.stub = std::make_unique<StubThread>(loop_, process.fragment->mailbox(), *slot);
        process.fragment->add_stub_thread(*thread.stub);
    }
    thread.stub->capture(thread.tid, context.regs);
    return true;
}

// Takes a thread that runs the program here into its stub. Nothing: as for stop().
Task<std::optional<ThreadContext>> HomeSession::capture(HomeThread& thread) {
    auto context = co_await stop(thread);
    if (context && !divert(thread, *context)) co_return std::nullopt;
    co_return context;
}

// Not only for code that is missing here.
bool HomeSession::may_leave_at_fault(Fragment& fragment, Address at, bool write, pid_t tid) {
    if (chaos_) return chaos_->leaves_at_fault();
    auto it = threads_.find(tid);
    const Mapping* m = fragment.space.find(at);
    if (it == threads_.end() || !m || !pager_.misses(*m, at, write)) return false;
    Gravity& gravity = it->second->gravity;
    gravity.faulted();
    return gravity.pulls();
}

Task<void> HomeSession::code_fault(std::shared_ptr<Fragment> fragment, Address at, bool write,
                                   pid_t tid) {
    auto find_movable = [&]() -> HomeThread* {
        auto it = threads_.find(tid);
        HomeThread* t = it == threads_.end() ? nullptr : it->second.get();
        bool movable = t && !t->helper && !t->remote && t->process->fragment == fragment;
        return movable ? t : nullptr;
    };
    HomeThread* thread = find_movable();
    FaultOrigin origin;
    if (thread && thread->left_at == at) {
        // Looking where it stands takes a while. It left from here before, so it most likely does
        // now; leave() finds out.
        origin = {FaultOrigin::Kind::program, at.value};
    } else {
        origin = thread ? co_await settled_origin(loop_, tid) : fault_origin(tid);
        thread = find_movable();
    }
    if (origin.kind == FaultOrigin::Kind::gone) co_return;
    Mapping* data = fragment->space.find(at);
    bool anchored = data && data->anchored;
    bool by_program = thread && origin.kind == FaultOrigin::Kind::program;
    if (anchored && by_program && thread->visiting) {
        thread->wants_device = true;
        trace::interrupt(tid);
        co_return;
    }
    if (anchored && !by_program) {
        refuse_loan(*fragment, at);
        co_return;
    }
    Mapping* code = fragment->space.find({origin.instruction});
    bool fetch = by_program && code && code->trapped &&
                 may_be_fetch(origin.instruction, at.value, page_size);
    bool chance = by_program && (chaos_ || anchored) && data && !data->trapped;
    bool visiting = thread && Clock::now() < thread->visits_until;
    bool drawn = false;
    if (by_program && !fetch && !chance && !visiting && thread->gravity.pulls()) {
        drawn = in_neutral_code(*fragment, origin, CodeClass::home);
        if (!drawn) thread->gravity.kept();
    }
    if ((!fetch && !chance && !drawn) || (fetch && visiting)) {
        pager_.serve(*fragment, at, write, tid);
        co_return;
    }
    if (thread->awaited) {
        // It is being stopped and will fault again; but not if it is in a system call, which had
        // its page and lost it before it got to it.
        loop_.after(stops_in, [this, fragment, at, write, tid] {
            auto now = threads_.find(tid);
            bool stuck = now != threads_.end() && now->second->awaited;
            if (stuck) pager_.serve(*fragment, at, write, static_cast<Tid>(tid));
        });
        co_return;
    }
    co_await leave(fragment, *thread, at, write, drawn ? Why::gravity : Why::code);
}

// The kernel here, or a thread that cannot go, wants memory that the acceptor alone can map.
void HomeSession::refuse_loan(const Fragment& fragment, Address at) {
    HomeProcess* process = find_process(fragment.pid());
    if (!process) return;
    give_up(*process,
            fmt::format("a system call at home uses memory of a device of the acceptor, at {:#x}; "
                        "run the code that makes it at the acceptor (--split all)",
                        at.value));
}

// For want of the page, which is code or, in chaos, anything.
Task<void> HomeSession::leave(std::shared_ptr<Fragment> fragment, HomeThread& thread, Address at,
                              bool write, Why why) {
    pid_t tid = thread.tid;
    // If it is not as we thought, it needs the page to come to where it can stop.
    auto stuck = loop_.after(stops_in, [this, fragment, at, write, tid] {
        pager_.serve(*fragment, at, write, static_cast<Tid>(tid));
    });
    auto context = co_await stop(thread);
    loop_.cancel(stuck);
    if (!context) co_return;
    Mapping* missing = fragment->space.find(at);
    bool code = missing && missing->trapped;
    if (code ? !stands_at_fetch(context->regs, fragment->space, at) : !in_program(context->regs)) {
        thread.left_at = {};
        pager_.serve(*fragment, at, write, static_cast<Tid>(tid));
        trace::resume(tid);
        co_return;
    }
    if (code && goes_on_with_call(*missing, context->regs)) {
        thread.visits_until = Clock::now() + visit_time;
        pager_.serve(*fragment, at, write, static_cast<Tid>(tid));
        trace::resume(tid);
        co_return;
    }
    if (code) thread.left_at = at;
    bool visit = why == Why::pinned || (missing && missing->anchored);
    if (why == Why::gravity) {
        thread.gravity.left(Clock::now());
        stats_.drawn_away++;
    }
    co_await depart(thread, *context, visit);
}

// It is in a ptrace stop. visit: for memory that only the acceptor may use.
Task<void> HomeSession::depart(HomeThread& thread, const ThreadContext& context, bool visit) {
    pid_t tid = thread.tid;
    spdlog::trace("depart: tid {} at {:#x}", tid, context.regs.rip);
    // What the acceptor must know first, the thread has to find out in its stub.
    bool stub_first = !thread.stub || thread.alt_stack_changed || thread.masked;
    if (stub_first && !divert(thread, context)) co_return;
    co_await cross(*thread.process, thread, context, visit);
    if (!stub_first) divert(thread, context);
    pager_.on_thread_gone(static_cast<Tid>(tid));
}

Task<void> HomeSession::cross(HomeProcess& process, HomeThread& thread,
                              const ThreadContext& context, bool visit) {
    FrameBuilder frame;
    auto crossing = frame.session().initCrossing();
    crossing.setPid(process.pid);
    crossing.setTid(thread.tid);
    crossing.setRegisters({reinterpret_cast<const uint8_t*>(&context.regs), sizeof context.regs});
    crossing.setSignalMask(context.signal_mask);
    crossing.setVisit(visit);
    auto untold = std::span(thread.filters).subspan(thread.filters_there);
    if (!untold.empty()) {
        filters_to_wire(untold, crossing.initFilters(static_cast<unsigned>(untold.size())));
        thread.filters_there = thread.filters.size();
    }
    put_missed(crossing, pager_.take_missed(thread.tid));
    std::shared_ptr<StubThread> kept = thread.stub;  // another thread may call exec
    StubThread& stub = *kept;
    if (std::exchange(thread.alt_stack_changed, false)) co_await put_alt_stack(stub, crossing);
    if (thread.cpu_modes != thread.cpu_modes_there) {
        crossing.setCpuModes(thread.cpu_modes.to_wire());
        thread.cpu_modes_there = thread.cpu_modes;
    }
    if (!std::exchange(thread.affinity_told, true)) {
        crossing.setAffinity({thread.affinity.data(), thread.affinity.size()});
    }
    uint64_t robust = robust_list_of(thread.tid);
    crossing.setRobustList(robust);
    auto state = pack_extended_state(ExtendedStateLayout::of_this_processor(), context.xstate);
    frame.add_raw(state);
    co_await end_loans();
    if (stub.dead()) co_return;
    thread.remote = true;
    if (stats_.crossings++ == 0) {
        spdlog::info("thread {} is the first to go to {}", thread.tid, link_.peer_name());
    }
    std::vector<PageKey> leaving;
    {
        LinkBatch together(link_);
        leaving = pager_.send_along(*process.fragment, thread.tid, context.regs, 1, false);
        if (leaving.empty()) link_.send(frame, Priority::urgent);
    }
    if (!leaving.empty()) {
        thread.leaving = true;
        co_await pager_.sent(std::move(leaving));
        if (stub.dead()) co_return;
        thread.leaving = false;
        link_.send(frame, Priority::urgent);
    }
    // At its end the kernel looks at the list where the thread runs then. That is there, unless
    // threads come back.
    if (robust != 0 && !policy_.mixed()) {
        co_await stub.call(SYS_set_robust_list, 0, robust_head_size);
    }
    // Nothing has been passed on before: it was blocked.
    if (std::exchange(thread.masked, false) && !thread.passed) {
        co_await take_mask(thread, context.signal_mask);
    }
}

// It makes its call at the acceptor instead.
Task<void> HomeSession::leave_at_call(HomeProcess& process, HomeThread& thread, bool visit) {
    auto context = co_await capture(thread);
    if (!context) co_return;
    trace::rewind_interrupted_call(context->regs);
    spdlog::trace("depart: tid {} at {:#x}", thread.tid, context->regs.rip);
    co_await cross(process, thread, *context, visit);
}

Task<void> HomeSession::arrive(Frame frame) {
    { auto guard = co_await metadata_.lock(); }
    co_await end_loans();
    auto crossing = frame->session().getCrossing();
    HomeThread* thread = find_thread(crossing.getPid(), crossing.getTid());
    if (!thread || !thread->stub || !thread->remote) co_return;
    if (crossing.getRegisters().size() != sizeof(user_regs_struct)) {
        link_.close("the acceptor sent a thread without its registers");
        co_return;
    }
    ThreadContext context;
    std::memcpy(&context.regs, crossing.getRegisters().begin(), sizeof context.regs);
    auto state = unpack_extended_state(ExtendedStateLayout::of_this_processor(), frame->raw());
    if (!state) {
        link_.close(state.error().message());
        co_return;
    }
    context.xstate = std::move(*state);
    context.signal_mask = crossing.getSignalMask();
    spdlog::trace("arrive: tid {} at {:#x}", thread->tid, context.regs.rip);
    stats_.crossings++;
    if (!policy_.mixed()) {
        if (thread->passed) co_await take_back(*thread, false);  // it left before that came there
        co_await take_alt_stack(*thread->stub, crossing);        // for its children
        co_await visit(*thread, std::move(context));
        co_return;
    }
    stats_.drawn_home += crossing.getByGravity();
    pager_.on_missed(thread->tid, missed_of(crossing));
    thread->remote = thread->masked = false;
    thread->gravity.arrived(Clock::now(), crossing.getMissed().size());
    thread->blocks_trap = context.signal_mask >> (SIGTRAP - 1) & 1;
    if (crossing.getVisit()) thread->visits_until = Clock::now() + visit_time;
    std::shared_ptr<StubThread> kept = thread->stub;  // another thread may call exec
    StubThread& stub = *kept;
    bool missed_one = thread->passed.has_value();  // it left before that came there
    if (missed_one) co_await take_back(*thread, false);
    uint64_t robust = crossing.getRobustList();
    if (robust != 0 && robust != robust_list_of(thread->tid)) {
        co_await stub.call(SYS_set_robust_list, robust, robust_head_size);
    }
    co_await take_alt_stack(stub, crossing);
    co_await stub.resume(context);
    if (missed_one && !stub.dead()) wake_others(*thread, context.signal_mask);
}

// A signal for a thread that is in its stub on the way into the program: the stub must not run a
// handler. It is blocked until the program's own mask is back. True: that was the case.
bool HomeSession::postpone_signal(HomeThread& thread, int signal) {
    bool on_its_way = thread.stub && (!thread.remote || thread.leaving);
    if (!on_its_way || signal == SIGSTOP) return false;
    auto regs = trace::registers(thread.tid);
    if (!regs || regs->rip >> 32 != GPR_STUB_HIGH_WORD) return false;
    // What ends the program need not wait for the stub, which the program may have broken.
    HomeProcess& process = *thread.process;
    if (deadly_signals(process.pid, process.caught_signals) >> (signal - 1) & 1) return false;
    thread.masked = true;
    leave_in_kernel(thread, signal);
    return true;
}

}  // namespace gpr
