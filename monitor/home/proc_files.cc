#include "monitor/home/proc_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/file_text.h"
#include "monitor/home/ends.h"
#include "monitor/home/filters.h"
#include "monitor/home/helper_calls.h"
#include "monitor/home/home.h"
#include "monitor/home/main_stack.h"
#include "monitor/home/memory_files.h"
#include "monitor/home/remote_usage.h"
#include "monitor/home/shown_maps.h"
#include "monitor/home/stops.h"
#include "monitor/node/memory_lock.h"
#include "monitor/node/proc_file.h"
#include "monitor/paging/growth.h"
#include "monitor/tracee/call_stops.h"
#include "monitor/tracee/process_stat.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/reserved_range.h"
#include "syscall/table.h"

namespace gpr::home {

namespace {

Task<int64_t> call_locked(StubThread& stub, Call call) {
    std::vector<Call> calls{call};
    co_await stub.run_locked(calls);
    co_return stub.dead() ? -ESRCH : calls[0].result;
}

// From the first argument to the end of the environment: fields 48 to 51 of proc_pid_stat(5).
Range arguments_of(pid_t pid) {
    std::string stat = text_of(fmt::format("/proc/{}/stat", pid));
    size_t name_end = stat.rfind(')');
    if (name_end == std::string::npos) return {};
    std::istringstream in(stat.substr(name_end + 1));
    std::string word;
    constexpr int first = 48, last = 51, after_name = 3;
    Range range{{~0UL}, {0}};
    for (int field = after_name; field <= last && in >> word; field++) {
        if (field < first) continue;
        Address at{std::stoull(word)};
        range = {std::min(range.begin, at), std::max(range.end, at)};
    }
    return range.begin < range.end ? range : Range{};
}

// The size in bytes of what the kernel lists as the main stack.
uint64_t kernels_stack(pid_t pid) {
    auto maps = read_maps(pid);
    for (const MapsEntry& e : maps ? *maps : std::vector<MapsEntry>{}) {
        if (e.name == "[stack]") return e.range.size();
    }
    return 0;
}

// The size of gpr's parts of the address space.
Elsewhere hidden_in(pid_t pid) {
    Elsewhere hidden;
    auto maps = read_maps(pid);
    for (const MapsEntry& e : maps ? *maps : std::vector<MapsEntry>{}) {
        if (!e.range.overlaps(reserved_range)) continue;
        hidden.hidden += e.range.size();
        if (!e.shared && (e.prot & PROT_WRITE)) hidden.hidden_data += e.range.size();
    }
    return hidden;
}

bool tells_numbers(const std::string& name) {
    return name == "status" || name == "stat" || name == "statm" || name == "wchan";
}

// The state of a thread. This kernel knows it, unless the thread is at an acceptor and not in a
// call that its shadow makes here. held: it waits for our answer about a call.
std::optional<ThreadState> shown_state(const HomeThread* thread, bool held,
                                       const std::optional<ThreadState>& there) {
    if (!thread) return std::nullopt;
    ThreadState here = thread_state(thread->tid);
    if (here.letter == 'Z' || here.letter == 'X') return here;
    if (thread->process->stopped) return ThreadState{'T', "do_signal_stop"};
    if (thread->remote() && !thread->is_in(HomeThread::Business::call) && there) return *there;
    const bool parked = thread->stub && thread->stub->in_stub() && !thread->stub->working();
    return held || parked ? ThreadState{} : here;
}

}  // namespace

// The command line and environment, from the program's memory, which may be elsewhere.
Task<std::string> ProcFiles::shown_arguments(HomeProcess& process, const std::string& path) {
    Range range = arguments_of(process.pid);
    std::shared_ptr<Fragment> fragment = process.fragment;
    if (!range.empty()) co_await home_.pager.supply.make_resident(*fragment, range, Access::read);
    co_return text_of(path);
}

// For status, stat, statm and wchan.
Task<std::string> ProcFiles::shown_numbers(HomeProcess& process, ProcFile file, std::string path) {
    pid_t pid = process.pid;
    Elsewhere more = hidden_in(pid);
    UsageCall call;
    call.memory = true;
    if (file.thread != 0) call.of = UsageCall::Of::thread;
    if (auto stack = main_stack(process.fragment->space)) {
        Address low = home_.main_stack.used(process);
        more.stack = {stack->end - low, low - stack->begin, stack->size() - kernels_stack(pid)};
    }
    more.locked = locked_bytes(process.fragment->space);
    ToldUsage told;
    if (process.started_remotely) {
        told = co_await home_.remote_usage.ask_usage(pid, file.thread, call, true);
    }
    if (home_.find_process(pid) != &process) co_return text_of(path);
    more.used = told.used;
    const HomeThread* thread = home_.find_thread(pid, file.thread != 0 ? file.thread : pid);
    const bool held = thread && home_.call_stops && home_.call_stops->holds(thread->tid);
    more.state = shown_state(thread, held, told.state);
    if (file.thread == 0) {
        more.used.join(process.used_by_images);
        more.by_children = RemoteUsage::used_by_children(process);
    }
    if (file.name == "wchan") co_return more.state ? more.state->waits_in : text_of(path);
    if (file.name == "stat") co_return stat_with(text_of(path), more);
    if (file.name == "statm") co_return statm_with(text_of(path), more);
    HomeThread* first = home_.find_thread(pid, pid);
    const size_t filters = first ? Filters::count(*first) : 0;
    std::istringstream in(status_with(text_of(path), more));
    std::string text, line;
    while (std::getline(in, line)) {
        if (line.starts_with("TracerPid:")) line = "TracerPid:\t0";
        if (line.starts_with("Seccomp:")) line = filters > 0 ? "Seccomp:\t2" : "Seccomp:\t0";
        if (line.starts_with("Seccomp_filters:"))
            line = fmt::format("Seccomp_filters:\t{}", filters);
        text += line + '\n';
    }
    co_return text;
}

// fd: what the call has just opened. The stub must be locked.
Task<void> ProcFiles::show_process(HomeProcess& process, StubThread& stub, int fd, ProcFile file) {
    pid_t pid = process.pid;
    std::string path = fmt::format("/proc/{}/fd/{}", pid, fd);
    std::optional<std::string> text;
    HomeProcess* shown = home_.find_process(file.process);
    if (!shown || !shown->fragment) co_return;
    if (file.name == "maps" || file.name == "smaps") {
        Address low = home_.main_stack.used(*shown);
        text = shown_maps(*shown, path, low, file.name == "smaps");
    } else if (tells_numbers(file.name)) {
        text = co_await shown_numbers(*shown, file, path);
    } else if (file.name == "children") {
        text = children_without([&](pid_t child) { return home_.ends.is_helper(child); },
                                text_of(path));
    } else if (file.name == "cmdline" || file.name == "environ") {
        text = co_await shown_arguments(*shown, path);
    }
    if (!text) co_return;
    uint64_t at = stub.scratch_address().value;
    auto put = [&](const std::string& name) {
        stub.scratch().write(0, std::as_bytes(std::span(name.c_str(), name.size() + 1)));
    };
    put("shown");
    int64_t made = co_await call_locked(stub, {SYS_memfd_create, {at, MFD_CLOEXEC}, 0});
    if (made < 0) co_return;  // then the program sees more than it should
    std::ofstream(fmt::format("/proc/{}/fd/{}", pid, made)) << *text << std::flush;
    if (file.name == "maps") queries.note_stand_in(*shown, pid, static_cast<int>(made));
    put(fmt::format("/proc/self/fd/{}", made));
    int64_t reader = co_await call_locked(
        stub, {SYS_openat, {static_cast<uint64_t>(AT_FDCWD), at, O_RDONLY | O_CLOEXEC}, 0});
    if (reader >= 0) {
        uint64_t flags = descriptor_flags(pid, fd) & O_CLOEXEC;
        uint64_t from = static_cast<uint64_t>(reader);
        co_await call_locked(stub, {SYS_dup3, {from, static_cast<uint64_t>(fd), flags}, 0});
        co_await call_locked(stub, {SYS_close, {from}, 0});
    }
    co_await call_locked(stub, {SYS_close, {static_cast<uint64_t>(made)}, 0});
}

// The thread opens the file in its stub, and gets our text instead.
Task<void> ProcFiles::open_call(HomeProcess& process, HomeThread& thread, Notification n) {
    if (!home_.notifier->still_valid(n.id)) co_return;
    auto context = co_await home_.stops.capture(thread);
    if (!context) co_return;
    StubThread& stub = *thread.stub;
    std::vector<Call> calls{Call{n.number, {}, 0}};
    std::memcpy(calls[0].args, n.args, sizeof n.args);
    {
        auto guard = co_await stub.lock();
        co_await stub.run_locked(calls);
        if (stub.dead()) co_return;
        if (calls[0].result >= 0) {
            co_await home_.memory_files.note_opened(process, stub,
                                                    static_cast<int>(calls[0].result));
        }
    }
    context->regs.rax = static_cast<uint64_t>(calls[0].result);
    context->regs.orig_rax = ~0UL;
    thread.masked = false;
    co_await home_.stops.go_on(thread, *context);
}

// Of a thread that a CallWatch has stopped: whether it has opened a file that may show the process.
bool ProcFiles::has_opened(const HomeThread& thread) {
    auto regs = trace::registers(thread.tid);
    if (!regs) return false;
    const Row* row = find_row(static_cast<uint32_t>(regs->orig_rax));
    return row && row->opens_by_name() && static_cast<int64_t>(regs->rax) >= 0;
}

Task<void> ProcFiles::show_opened(HomeThread& thread) {
    if (!thread.process->fragment) {  // an image that could not be split: it sees the real file
        trace::resume(thread.tid);
        co_return;
    }
    auto context = capture_context(thread.tid);
    if (!context || !home_.stops.divert(thread, *context)) co_return;
    StubThread& stub = *thread.stub;
    {
        auto guard = co_await stub.lock();
        if (stub.dead()) co_return;
        co_await home_.memory_files.note_opened(*thread.process, stub,
                                                static_cast<int>(context->regs.rax));
    }
    context->regs.orig_rax = ~0UL;
    thread.masked = false;
    co_await home_.stops.go_on(thread, *context);
}

}  // namespace gpr::home
