#include "acceptor/box/worker_process.h"

#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <initializer_list>
#include <new>

#include "monitor/node/process_names.h"

namespace gpr {
namespace {

// Only the soft limit, so that it can be raised for the last message.
void set_data_limit(rlim_t most) {
    rlimit limit{};
    getrlimit(RLIMIT_DATA, &limit);
    limit.rlim_cur = std::min(limit.rlim_max, most);
    setrlimit(RLIMIT_DATA, &limit);
}

[[noreturn]] void end_for_memory() {
    std::set_new_handler(nullptr);
    rlimit limit{};
    getrlimit(RLIMIT_DATA, &limit);
    set_data_limit(RLIM_INFINITY);
    spdlog::error(
        "the session ends: its worker needs more than the {} MiB of memory that it may "
        "have for itself",
        limit.rlim_cur >> 20);
    spdlog::default_logger()->flush();
    _exit(worker_out_of_memory);
}

}  // namespace

void limit_own_memory(uint64_t bytes) {
    set_data_limit(bytes);
    std::set_new_handler(end_for_memory);
}

void become_worker_process(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(0);
    setsid();
    prctl(PR_SET_NAME, worker_process_name);
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGCHLD}) signal(number, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace gpr
