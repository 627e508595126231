#include "acceptor/box/probe_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "acceptor/box/worker_process.h"
#include "transport/greeting_messages.h"

namespace gpr {
namespace {

using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr size_t most_bytes = max_message_bytes;
// How long a killed process may take to be gone, unless the kernel holds it.
constexpr milliseconds dying_time{500};

// If a library crashes it shall crash at once: without running our signal handlers, and without
// dumping our memory to disk.
void let_it_crash() {
    for (const int number : {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGTRAP}) {
        signal(number, SIG_DFL);
    }
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
}

// Leaves the process only /dev/null (0 to 2) and the pipe for its answer (3).
void keep_only(int answer) {
    const int null = open("/dev/null", O_RDWR);
    for (int standard = 0; standard < 3; ++standard) dup2(null, standard);
    if (answer != 3) dup3(answer, 3, O_CLOEXEC);
    close_range(4, ~0U, 0);
}

void answer_with(const Inventory& inventory) {
    FrameBuilder frame;
    write_inventory(inventory, frame.message().initWelcome().initInventory());
    const auto bytes = frame_bytes(frame);
    if (!bytes) return;
    for (size_t sent = 0; sent < bytes->size();) {
        const auto more = TEMP_FAILURE_RETRY(write(3, bytes->data() + sent, bytes->size() - sent));
        if (more <= 0) return;
        sent += static_cast<size_t>(more);
    }
}

bool is_gone_soon(pid_t pid, int& status) {
    const auto give_up_at = SteadyClock::now() + dying_time;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (SteadyClock::now() >= give_up_at) return false;
        poll(nullptr, 0, 2);
    }
    return true;
}

int milliseconds_until(SteadyClock::time_point when) {
    const auto left = std::chrono::ceil<milliseconds>(when - SteadyClock::now());
    return static_cast<int>(std::max<int64_t>(0, left.count()));
}

}  // namespace

Result<ProbeProcess> ProbeProcess::start(const Probe& probe, milliseconds time_limit) {
    std::array<int, 2> ends{};
    GPR_CHECK(from_libc(pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), "make a pipe"));
    ProbeProcess process;
    process.answer_ = Fd(ends[0]);
    const Fd theirs(ends[1]);
    const pid_t parent = getpid();
    GPR_TRY(const long pid, from_libc(fork(), "start a process"));
    if (pid == 0) {
        become_worker_process(parent);
        prctl(PR_SET_NAME, "gpr-inventory");
        let_it_crash();
        keep_only(theirs.get());
        fcntl(3, F_SETFL, 0);
        answer_with(probe.ask());
        _exit(0);  // without running the library's exit handlers
    }
    process.name_ = probe.name;
    process.pid_ = static_cast<pid_t>(pid);
    process.time_limit_ = time_limit;
    process.deadline_ = SteadyClock::now() + time_limit;
    return process;
}

ProbeProcess::ProbeProcess(ProbeProcess&& other) noexcept
    : name_(std::move(other.name_)),
      pid_(std::exchange(other.pid_, -1)),
      answer_(std::move(other.answer_)),
      time_limit_(other.time_limit_),
      deadline_(other.deadline_),
      bytes_(std::move(other.bytes_)),
      ended_(other.ended_) {}

ProbeProcess::~ProbeProcess() { how_it_ended(); }

bool ProbeProcess::is_done() {
    std::array<std::byte, 16 << 10> part{};
    while (!ended_) {
        const ssize_t got = TEMP_FAILURE_RETRY(read(answer_.get(), part.data(), part.size()));
        if (got < 0 && errno == EAGAIN) break;
        ended_ = got <= 0 || bytes_.size() > most_bytes;
        if (got > 0) bytes_.insert(bytes_.end(), part.begin(), part.begin() + got);
    }
    return ended_ || SteadyClock::now() >= deadline_;
}

Inventory ProbeProcess::take_answer() {
    if (!ended_) {
        how_it_ended();
        const auto seconds = std::chrono::duration<double>(time_limit_).count();
        return failed(fmt::format("no answer within {:.1f} s", seconds));
    }
    const auto frame = frame_of(bytes_);
    if (frame && frame->message().isWelcome()) {
        return read_inventory(frame->message().getWelcome().getInventory());
    }
    return failed(how_it_ended());
}

Inventory ProbeProcess::failed(const std::string& why) const {
    Inventory inventory;
    inventory.sources.push_back({name_, "failed", why});
    return inventory;
}

// Also kills it, and whatever a library has started in its process group.
std::string ProbeProcess::how_it_ended() {
    if (pid_ <= 0) return {};
    const pid_t pid = std::exchange(pid_, -1);
    int status = 0;
    // A process that has closed its pipe may still be exiting.
    const bool by_itself = ended_ && is_gone_soon(pid, status);
    kill(-pid, SIGKILL);
    if (!by_itself) {
        kill(pid, SIGKILL);  // in case it has not made its group yet
        is_gone_soon(pid, status);
    }
    if (by_itself && WIFSIGNALED(status)) {
        return fmt::format("the library ended it with signal {} ({})", WTERMSIG(status),
                           strsignal(WTERMSIG(status)));
    }
    return "no answer that makes sense";
}

std::vector<Inventory> run_probes(const std::vector<Probe>& probes, milliseconds time_limit) {
    std::vector<ProbeProcess> running;
    std::vector<Inventory> parts;
    for (const Probe& probe : probes) {
        auto started = ProbeProcess::start(probe, time_limit);
        if (started) {
            running.push_back(std::move(*started));
        } else {
            parts.emplace_back().sources.push_back(
                {probe.name, "failed", started.error().message()});
        }
    }
    // In the order of the probes, not of their answers, so that two inventories are alike.
    for (ProbeProcess& process : running) {
        while (!process.is_done()) {
            pollfd waiting{process.fd(), POLLIN, 0};
            poll(&waiting, 1, milliseconds_until(process.deadline()));
        }
        parts.push_back(process.take_answer());
    }
    return parts;
}

}  // namespace gpr
