#include "monitor/home/core_dumps.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <vector>

#include "base/file_text.h"
#include "base/log.h"
#include "monitor/home/ends.h"
#include "monitor/home/home.h"
#include "monitor/home/homecoming.h"
#include "monitor/home/shared_memory.h"
#include "monitor/home/signals.h"
#include "monitor/home/stops.h"
#include "monitor/tracee/ptrace.h"
#include "stub/layout.h"

namespace gpr::home {

namespace {

// signal(7), "Core".
constexpr uint64_t bit_of(int signal) { return 1ULL << (signal - 1); }
constexpr uint64_t dumping_signals =
    bit_of(SIGQUIT) | bit_of(SIGILL) | bit_of(SIGTRAP) | bit_of(SIGABRT) | bit_of(SIGBUS) |
    bit_of(SIGFPE) | bit_of(SIGSEGV) | bit_of(SIGXCPU) | bit_of(SIGXFSZ) | bit_of(SIGSYS);

// A program or socket of core_pattern gets core files whatever the limit is, unless it is 1.
bool kernel_wants_it(pid_t pid) {
    rlimit limit{};
    if (prlimit(pid, RLIMIT_CORE, nullptr, &limit) != 0) return false;
    const std::string pattern = text_of("/proc/sys/kernel/core_pattern");
    const bool to_file = !pattern.starts_with('|') && !pattern.starts_with('@');
    return to_file ? limit.rlim_cur > 0 : limit.rlim_cur != 1;
}

}  // namespace

bool CoreDumps::is_due(const HomeProcess& process, int signal) {
    const bool is_whole = process.fragment && process.state == HomeProcess::State::split &&
                          !process.has_vfork_children && !process.shares_memory_with;
    return is_whole && !process.comes_home && !process.doomed && !process.executing &&
           dumping_signals & bit_of(signal) && kernel_wants_it(process.pid);
}

Task<void> CoreDumps::die_of(HomeThread& thread, siginfo_t info) {
    HomeProcess& process = *thread.process;
    const pid_t pid = process.pid, tid = thread.tid;
    spdlog::info("process {} dies of signal {}: its threads and memory come home for its core file",
                 pid, info.si_signo);
    process.comes_home = true;
    process.dumped_for = tid;
    if (!thread.remote() && !thread.goes_on_with) {
        auto context = capture_context(tid);
        if (context && home_.stops.divert(thread, *context)) {
            thread.goes_on_with = std::make_unique<ThreadContext>(std::move(*context));
        }
    }
    auto home = co_await home_.homecoming.bring_threads(process);
    if (home_.find_process(pid) != &process) co_return;
    if (!home) {
        spdlog::warn("the core file of process {} will not be complete: {}", pid,
                     home.error().message());
        HomeThread* dying = home_.find_thread(pid, tid);
        if (dying && dying->stub) co_await home_.signals.die_of(*dying, info.si_signo);
        co_return;
    }
    std::shared_ptr<Fragment> fragment = process.fragment;
    co_await home_.pager.forks.begin_fork(fragment, paging::Forks::FileCopies::left);
    auto shown = co_await home_.homecoming.show_files_again(process);
    if (!shown) {
        spdlog::info("in the core file copies of files: {}", shown.error().message());
        co_await home_.pager.forks.fill(fragment);
    }
    co_await home_.shared_memory.save_shared(process);
    co_await home_.ends.end_remotely(process, false);
    co_await let_kernel_dump(process, info);
}

// All threads must be in their stubs. Each leaves its stub with the program's registers and stays
// stopped until the kernel has written them down and kills it.
Task<void> CoreDumps::let_kernel_dump(HomeProcess& process, siginfo_t info) {
    const pid_t pid = process.pid, tid = process.dumped_for;
    HomeThread* thread = home_.find_thread(pid, tid);
    if (!thread || !thread->stub || !thread->goes_on_with) co_return;
    std::shared_ptr<StubThread> stub = thread->stub;
    co_await stub->call(SYS_madvise, GPR_RESERVED_BEGIN, GPR_RESERVED_END - GPR_RESERVED_BEGIN,
                        MADV_DONTDUMP);
    const auto number = static_cast<uint64_t>(info.si_signo);
    stub->scratch().part(0, 64).clear();  // SIG_DFL
    co_await stub->call(SYS_rt_sigaction, number, stub->scratch_address().value, 0, 8);
    std::vector<pid_t> tids;
    for (const auto& [other, each] : process.threads) {
        if (other != tid && each->goes_on_with) tids.push_back(other);
    }
    tids.push_back(tid);
    for (const pid_t each : tids) {
        HomeThread* leaving = home_.find_thread(pid, each);
        if (!leaving || !leaving->goes_on_with) continue;
        auto out = co_await home_.stops.take_out(*leaving, *leaving->goes_on_with);
        if (!out) co_return;  // the process has been killed
    }
    const uint64_t mask = thread->goes_on_with->signal_mask;
    trace::set_signal_mask(tid, 0);
    syscall(SYS_tgkill, pid, tid, info.si_signo);
    for (;;) {
        trace::resume(tid);
        const WaitStatus status = co_await home_.stops.next_stop(*thread);
        if (status.ended()) co_return;
        if (status.kind == WaitStatus::Kind::event) {  // it is killed
            home_.on_wait(tid, status);
            co_return;
        }
        if (status.kind == WaitStatus::Kind::signal_stop && status.value == info.si_signo) break;
    }
    trace::set_signal_info(tid, info);
    trace::set_signal_mask(tid, mask);
    trace::resume(tid, info.si_signo);
}

}  // namespace gpr::home
