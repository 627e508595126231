#include "acceptor/worker/selects.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "acceptor/worker/forwarding.h"
#include "acceptor/worker/masks.h"
#include "acceptor/worker/names.h"
#include "acceptor/worker/signals.h"
#include "acceptor/worker/worker.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/reserved_range.h"
#include "syscall/marshal.h"

namespace gpr::worker {

namespace {

constexpr short readable = POLLIN | POLLRDNORM | POLLRDBAND | POLLHUP | POLLERR;
constexpr short writable = POLLOUT | POLLWRNORM | POLLWRBAND | POLLERR;
constexpr std::array<short, 3> meanings{readable, writable, POLLPRI};  // of the three sets
constexpr short never_asked_for = POLLHUP | POLLERR;
constexpr size_t word_bits = 64;

// The sets as in the call: bit n is descriptor n.
struct Sets {
    int count = 0;
    std::array<std::vector<uint64_t>, 3> bits;

    [[nodiscard]] short events_of(int fd) const {
        short events = 0;
        for (size_t i = 0; i < bits.size(); i++) {
            if (has(i, fd)) events |= meanings[i];
        }
        return events;
    }
    [[nodiscard]] bool has(size_t set, int fd) const {
        auto word = static_cast<size_t>(fd) / word_bits;
        return word < bits[set].size() && (bits[set][word] >> (fd % word_bits) & 1);
    }
    void put(size_t set, int fd) {
        bits[set][static_cast<size_t>(fd) / word_bits] |= uint64_t{1} << (fd % word_bits);
    }
};

// Sets the bits of what is ready in the sets that asked for it.
int64_t note_ready(const Sets& asked, int fd, short revents, Sets& ready) {
    int64_t found = 0;
    for (size_t i = 0; i < meanings.size(); i++) {
        if (!(revents & meanings[i]) || !asked.has(i, fd)) continue;
        ready.put(i, fd);
        found++;
    }
    return found;
}

// Checks our descriptors without waiting. A closed one counts as ready: there is an error to
// report.
bool any_ready(std::vector<pollfd>& own) {
    ::poll(own.data(), own.size(), 0);
    bool any = false;
    for (const pollfd& entry : own) {
        any = any || entry.fd < 0 || (entry.revents & (entry.events | POLLNVAL));
    }
    return any;
}

}  // namespace

// Presents memory of ours as the program's, at addresses that no program has.
class Selects::OwnMemory final : public MemoryReader {
public:
    explicit OwnMemory(size_t size) : bytes(size) {}

    ReadOutcome read(Address from, void* to, size_t count) override {
        if (!contains(from, count)) return ReadOutcome::unmapped;
        std::memcpy(to, bytes.data() + (from.value - base), count);
        return ReadOutcome::done;
    }
    void write(Address to, std::span<const std::byte> from) {
        if (contains(to, from.size())) {
            std::memcpy(bytes.data() + (to.value - base), from.data(), from.size());
        }
    }
    [[nodiscard]] bool contains(Address at, size_t count) const {
        return at.value >= base && at.value - base <= bytes.size() &&
               count <= bytes.size() - (at.value - base);
    }

    static constexpr uint64_t base = reserved_range.begin.value;
    std::vector<std::byte> bytes;
};

// The thread's shadow makes the call, on memory of ours. Returns the kernel's result.
Task<int64_t> Selects::call_home(RemoteProcess& process, RemoteThread& thread, uint32_t number,
                                 SyscallArguments args, OwnMemory& memory, uint32_t wait) {
    Marshalled marshalled = marshal(number, args, memory);
    auto* call = std::get_if<MarshalledCall>(&marshalled);
    if (!call) co_return -ENOMEM;
    worker_.counts.home++;
    FrameBuilder frame;
    auto request = frame.session().initCall();
    request.setPid(process.pid);
    request.setTid(thread.tid);
    request.setNumber(number);
    request.setWaited(std::exchange(thread.waited_ns, 0));
    request.setStopped(std::exchange(thread.stopped_calls, 0));
    auto list = request.initArgs(6);
    for (unsigned i = 0; i < 6; i++) list.set(i, args[i]);
    request.setWait(wait);
    request.setRepeatable(thread.where() != RemoteThread::Where::held);
    std::vector<std::byte> bytes = serialise_call(*call);
    frame.add_raw(bytes);
    thread.answer = std::make_unique<OneShot<int64_t>>(worker_.loop);
    thread.answer_bytes.clear();
    OneShot<int64_t>& answer = *thread.answer;
    if (process.frozen) worker_.stopped.notify_all();
    worker_.link.send(frame, gpr::Priority::urgent);
    int64_t result = co_await answer;
    thread.answer.reset();
    std::vector<std::byte> out = std::move(thread.answer_bytes);
    if (out.empty()) co_return result;
    auto scattered = scatter(*call, out);
    if (!scattered) {
        worker_.link.close(scattered.error().message());
        co_return thread_gone;
    }
    for (const MemoryWrite& w : scattered->writes) memory.write(w.to, w.bytes);
    co_return result;
}

// A select with descriptors of both nodes, its timeout and its mask.
struct Selects::Select {
    Sets asked;
    std::vector<pollfd> own;  // with our own numbers
    std::vector<int> own_numbers;
    std::vector<Fd> copies;
    std::vector<pollfd> others;
    std::optional<timespec> time;
    std::optional<uint64_t> mask;
};

// nullptr if home shall report an error, or has all descriptors.
Task<std::unique_ptr<Selects::Select>> Selects::read_select(RemoteProcess& process,
                                                            Notification n) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    auto select = std::make_unique<Select>();
    Sets& asked = select->asked;
    if (static_cast<int>(n.args[0]) <= 0) co_return nullptr;
    asked.count = std::min(static_cast<int>(n.args[0]), static_cast<int>(process.fd_base));
    size_t words = (static_cast<size_t>(asked.count) + word_bits - 1) / word_bits;
    for (size_t i = 0; i < asked.bits.size(); i++) {
        asked.bits[i].resize(words);
        if (n.args[i + 1] == 0) continue;
        auto bytes = std::as_writable_bytes(std::span(asked.bits[i]));
        bool read = co_await worker_.pager.memory.read(*fragment, {n.args[i + 1]}, bytes);
        if (!read) co_return nullptr;
    }
    for (int fd = 0; fd < asked.count; fd++) {
        short events = asked.events_of(fd);
        if (events == 0) continue;
        auto wanted = static_cast<short>(events & ~never_asked_for);
        if (!process.names.contains(fd)) {
            select->others.push_back({fd, wanted, 0});
            continue;
        }
        Fd copy(static_cast<int>(syscall(SYS_pidfd_getfd, process.pidfd.get(), fd, 0)));
        select->own.push_back({copy.get(), events, 0});
        select->own_numbers.push_back(fd);
        select->copies.push_back(std::move(copy));
    }
    std::array<int64_t, 2> time{};
    if (n.args[4] != 0) {
        auto bytes = std::as_writable_bytes(std::span(time));
        bool read = co_await worker_.pager.memory.read(*fragment, {n.args[4]}, bytes);
        if (!read) co_return nullptr;
        int64_t parts = n.number == SYS_select ? 1'000'000 : 1'000'000'000;
        if (time[0] < 0 || time[1] < 0 || time[1] >= parts) co_return nullptr;
        select->time = timespec{time[0], time[1] * (1'000'000'000 / parts)};
    }
    uint64_t mask_at = 0;
    if (n.number == SYS_pselect6) mask_at = co_await worker_.masks.mask_of_call(process, n);
    if (mask_at != 0) {
        uint64_t mask = 0;
        bool read = co_await worker_.pager.memory.read(*fragment, {mask_at},
                                                       std::as_writable_bytes(std::span(&mask, 1)));
        if (!read) co_return nullptr;
        select->mask = mask;
    }
    co_return select;
}

// Makes home wait for its descriptors; meanwhile we watch ours. in_vain: the wait was ended because
// one of ours is ready.
Task<int64_t> Selects::wait_for_others(RemoteProcess& process, RemoteThread& thread, Select& select,
                                       bool waits, bool& in_vain) {
    size_t set_bytes = select.others.size() * sizeof(pollfd);
    OwnMemory memory(set_bytes + sizeof(timespec) + sizeof(uint64_t));
    std::memcpy(memory.bytes.data(), select.others.data(), set_bytes);
    bool timed = !waits || select.time;
    timespec time = waits && select.time ? *select.time : timespec{0, 0};
    std::memcpy(memory.bytes.data() + set_bytes, &time, sizeof time);
    uint64_t mask = select.mask.value_or(0);
    std::memcpy(memory.bytes.data() + set_bytes + sizeof time, &mask, sizeof mask);
    uint64_t time_at = OwnMemory::base + set_bytes, mask_at = time_at + sizeof time;
    SyscallArguments args{OwnMemory::base,           select.others.size(), timed ? time_at : 0,
                          select.mask ? mask_at : 0, sizeof mask,          0};
    uint32_t wait = 0;
    bool ended = false;
    std::vector<Watch> watches;
    if (waits) {
        wait = worker_.forwarding.next_wait();
        for (const pollfd& entry : select.own) {
            // A hang-up does not end a wait for exceptions only, and would be reported for ever.
            if (entry.fd < 0 || entry.events == POLLPRI) continue;
            auto events = static_cast<uint32_t>(entry.events);
            watches.push_back(worker_.loop.watch(entry.fd, events, [&, this](uint32_t) {
                watches.clear();
                if (!std::exchange(ended, true)) worker_.forwarding.interrupt_at_home(thread, wait);
            }));
        }
    }
    int64_t result = co_await call_home(process, thread, SYS_ppoll, args, memory, wait);
    watches.clear();
    in_vain = ended && !thread.answer_signal && result == -EINTR;
    std::memcpy(select.others.data(), memory.bytes.data(), set_bytes);
    if (waits && select.time) {
        std::memcpy(&*select.time, memory.bytes.data() + set_bytes, sizeof time);
    }
    co_return result;
}

Task<int64_t> Selects::make_select(RemoteProcess& process, RemoteThread& thread, Notification n,
                                   Select& select) {
    Sets ready;
    for (auto& set : ready.bits) set.resize(select.asked.bits[0].size());
    int64_t found = 0;
    for (;;) {
        bool waits = !any_ready(select.own), in_vain = false;
        int64_t result = co_await wait_for_others(process, thread, select, waits, in_vain);
        if (result == thread_gone || (result < 0 && !in_vain)) co_return result;
        bool ours = any_ready(select.own);
        if (result <= 0 && !ours && in_vain) continue;  // another thread has taken it
        for (size_t i = 0; i < select.own.size(); i++) {
            const pollfd& entry = select.own[i];
            if (entry.fd < 0) co_return -EBADF;
            found += note_ready(select.asked, select.own_numbers[i], entry.revents, ready);
        }
        for (const pollfd& entry : select.others) {
            if (result < 0) break;
            if (entry.revents & POLLNVAL) co_return -EBADF;
            found += note_ready(select.asked, entry.fd, entry.revents, ready);
        }
        break;
    }
    std::shared_ptr<Fragment> fragment = process.fragment;
    for (size_t i = 0; i < ready.bits.size(); i++) {
        if (n.args[i + 1] == 0) continue;
        auto bytes = std::as_bytes(std::span(ready.bits[i]));
        bool written = co_await worker_.pager.memory.write(*fragment, {n.args[i + 1]}, bytes);
        if (!written) co_return -EFAULT;
    }
    co_return found;
}

Task<void> Selects::select_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    std::unique_ptr<Select> select;
    if (!process.names.empty()) {
        co_await worker_.names.bring_names(process);
        select = co_await read_select(process, n);
    }
    if (!select || select->own.empty()) {
        co_await worker_.forwarding.forward(process, thread, n);
        co_return;
    }
    worker_.counts.fd_owner++;
    // Signals that the mask lets through arrive at home.
    if (select->others.empty() && !select->mask) {
        process.notifier->let_it_run(n.id);
        co_return;
    }
    if (worker_.signals.has_signal_to_handle(thread)) {
        process.notifier->reply_raw(n.id, -trace::restart_nointr);
        co_return;
    }
    std::shared_ptr<Fragment> fragment = process.fragment;
    int64_t result = co_await make_select(process, thread, n, *select);
    if (select->time && result != thread_gone) {  // even if a signal has ended it
        std::array<int64_t, 2> left{select->time->tv_sec, select->time->tv_nsec};
        if (n.number == SYS_select) left[1] /= 1000;
        co_await worker_.pager.memory.write(*fragment, {n.args[4]}, std::as_bytes(std::span(left)));
    }
    co_await worker_.forwarding.end_forwarded(process, thread, n, result);
}

}  // namespace gpr::worker
