#include "acceptor/worker/closed_numbers.h"

#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <vector>

#include "acceptor/worker/forwarding.h"
#include "acceptor/worker/worker.h"
#include "syscall/table.h"

namespace gpr::worker {

namespace {

constexpr unsigned patience = 8;          // failed closes before we ask home
constexpr uint64_t looked_at_once = 512;  // numbers; less than most limits of open files

// The argument of the poll(2) that home is asked to make, as if in the program's memory.
class NumbersToPoll : public MemoryReader {
public:
    explicit NumbersToPoll(uint64_t first) : numbers_(looked_at_once) {
        for (pollfd& number : numbers_) number.fd = static_cast<int>(first++);
    }

    ReadOutcome read(Address from, void* to, size_t bytes) override {
        auto all = std::as_bytes(std::span(numbers_));
        const uint64_t offset = from - at;
        if (offset > all.size() || bytes > all.size() - offset) return ReadOutcome::unmapped;
        std::memcpy(to, all.data() + offset, bytes);
        return ReadOutcome::done;
    }
    // How many numbers, from the first on, are not open.
    [[nodiscard]] uint64_t closed(const MarshalledCall& sent, std::span<const std::byte> answer) {
        auto scattered = scatter(sent, answer);
        if (!scattered) return 0;
        auto all = std::as_writable_bytes(std::span(numbers_));
        for (const MemoryWrite& w : scattered->writes) {
            const uint64_t offset = w.to - at;
            if (offset > all.size() || w.bytes.size() > all.size() - offset) return 0;
            std::ranges::copy(w.bytes, all.begin() + static_cast<ptrdiff_t>(offset));
        }
        auto is_open = [](const pollfd& number) { return !(number.revents & POLLNVAL); };
        return static_cast<uint64_t>(std::ranges::find_if(numbers_, is_open) - numbers_.begin());
    }

    static constexpr Address at{page_size};

private:
    std::vector<pollfd> numbers_;
};

}  // namespace

bool ClosedNumbers::is_about_one(const RemoteProcess& process, const Notification& n) {
    const ClosedRange& closed = process.closed;
    const auto number = static_cast<uint32_t>(n.args[0]);
    if (number < closed.first || number >= closed.end) return false;
    const Row* row = find_row(n.number);
    return row && row->has(Trait::fd_first);
}

void ClosedNumbers::forget(RemoteProcess& process) {
    process.closed.first = process.closed.end = 0;
    process.closed.forgotten++;
}

void ClosedNumbers::forget_for(RemoteProcess& process, const Notification& n) {
    forget(process);
    ClosedRange& closed = process.closed;
    if (n.number == SYS_close) return;
    closed.bad_closes = 0;
    bool shares = n.number == SYS_clone && (n.args[0] & CLONE_FILES) && !(n.args[0] & CLONE_THREAD);
    tables_are_shared_ = tables_are_shared_ || shares;
    // The kernel may open files by itself for requests in a ring.
    closed.never = closed.never || n.number == SYS_io_uring_setup;
}

// Whether everything that could open a descriptor is here and not waiting for home.
bool ClosedNumbers::may_look(const RemoteProcess& process, const RemoteThread& thread) const {
    if (tables_are_shared_ || process.mixed || process.closed.never) return false;
    if (!thread.filters.empty()) return false;  // they might refuse our poll()
    return std::ranges::all_of(process.threads, [&](const auto& other) {
        const RemoteThread& one = *other.second;
        return one.here() && !one.answer;
    });
}

Task<void> ClosedNumbers::look_beyond(RemoteProcess& process, RemoteThread& thread,
                                      const Notification& n) {
    const pid_t pid = process.pid, tid = thread.tid;
    const uint64_t first = static_cast<uint32_t>(n.args[0]);
    const uint64_t end = process.fd_base != 0 ? process.fd_base : uint64_t{INT_MAX};
    if (++process.closed.bad_closes < patience || first + looked_at_once > end) co_return;
    if (!may_look(process, thread)) co_return;
    NumbersToPoll asked(first);
    const SyscallArguments args{NumbersToPoll::at.value, looked_at_once, 0, 0, 0, 0};
    auto call = marshal(SYS_poll, args, asked);
    auto* ready = std::get_if<MarshalledCall>(&call);
    if (!ready) co_return;
    const MarshalledCall sent = *ready;
    const uint64_t before = process.closed.forgotten;
    std::vector<std::byte> answer;
    int64_t result = co_await worker_.forwarding.ask_prepared(thread, sent, answer);
    RemoteProcess* still = worker_.find_process(pid);
    if (result < 0 || still != &process || worker_.find_thread(pid, tid) != &thread) co_return;
    if (process.closed.forgotten != before || !may_look(process, thread)) co_return;
    process.closed.first = first;
    process.closed.end = first + asked.closed(sent, answer);
}

}  // namespace gpr::worker
