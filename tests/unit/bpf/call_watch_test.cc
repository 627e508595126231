// The watch over calls in the kernel, with real processes that wait, wake and open.
#include "bpf/call_watch.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <csignal>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

using namespace gpr;

namespace {

constexpr pid_t name = 4711;  // what the supervisor calls the process
constexpr size_t page = 4096;

long futex(uint32_t* word, int operation, uint32_t value, const timespec* timeout = nullptr,
           uint32_t* other = nullptr, uint32_t bitset = 0) {
    return syscall(SYS_futex, word, operation, value, timeout, other, bitset);
}

uint64_t address_of(const uint32_t* word) { return reinterpret_cast<uint64_t>(word); }

// Where this is not allowed, the product does without, and there is nothing to test.
std::unique_ptr<CallWatch> load() {
    auto watch = CallWatch::load();
    if (watch) return std::move(*watch);
    MESSAGE("skipped: " << watch.error().message());
    REQUIRE(geteuid() != 0);
    return nullptr;
}

// Memory that a child shares, so that it can be told what to do and looked at.
class Words {
public:
    Words()
        : at_(static_cast<uint32_t*>(mmap(nullptr, pages * page, PROT_READ | PROT_WRITE,
                                          MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
        REQUIRE(at_ != MAP_FAILED);
    }
    ~Words() { munmap(at_, pages * page); }
    Words(const Words&) = delete;
    Words& operator=(const Words&) = delete;

    static constexpr size_t pages = 64;
    [[nodiscard]] uint32_t* at(size_t page_index) const {
        return at_ + page_index * page / sizeof *at_;
    }

private:
    uint32_t* at_;
};

// A child that begins when it has joined the watch.
template <typename Act>
class Child {
public:
    explicit Child(Act act) {
        int ends[2];
        REQUIRE(pipe(ends) == 0);
        pid_ = fork();
        REQUIRE(pid_ >= 0);
        if (pid_ == 0) {
            close(ends[1]);
            char go = 0;
            if (::read(ends[0], &go, 1) != 1) _exit(1);
            act();
            _exit(0);
        }
        close(ends[0]);
        go_ = ends[1];
    }
    ~Child() {
        if (pid_ > 0) kill(pid_, SIGKILL);
        wait();
        close(go_);
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    void start() const { REQUIRE(::write(go_, "g", 1) == 1); }
    int wait() {
        int status = 0;
        if (pid_ > 0) waitpid(pid_, &status, 0);
        pid_ = -1;
        return status;
    }
    [[nodiscard]] pid_t pid() const { return pid_; }

private:
    pid_t pid_ = -1;
    int go_ = -1;
};

template <typename Condition>
bool comes_true(Condition condition) {
    auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > limit) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
}

std::vector<WatchedWake> fetch(CallWatch& watch) {
    std::vector<WatchedWake> wakes;
    watch.fetch([&](const WatchedWake& wake) { wakes.push_back(wake); });
    return wakes;
}

bool is_readable(int fd) {
    pollfd asked{fd, POLLIN, 0};
    return poll(&asked, 1, 0) == 1;
}

}  // namespace

TEST_CASE("a waiter is counted while it waits, however it is interrupted, and until it dies") {
    auto watch = load();
    if (!watch) return;
    Words words;
    const timespec long_time{100, 0};
    Child child([&] {
        while (*words.at(3) == 0) futex(words.at(3), FUTEX_WAIT, 0, &long_time);
        futex(words.at(5), FUTEX_WAIT_BITSET, 0, nullptr, nullptr, 1);
    });
    REQUIRE(watch->join(child.pid(), name, {}));
    CHECK(watch->waiting() == WaiterSummary{});
    child.start();
    auto waits_at = [&](size_t index) {
        return watch->waiting().may_wait(address_of(words.at(index)));
    };
    CHECK(comes_true([&] { return waits_at(3); }));
    CHECK_FALSE(waits_at(5));
    // A wait with a timeout goes on by restart_syscall.
    for (int round = 0; round < 20; round++) {
        kill(child.pid(), SIGSTOP);
        waitpid(child.pid(), nullptr, WUNTRACED);
        kill(child.pid(), SIGCONT);
        CHECK(comes_true([&] { return waits_at(3); }));
    }
    *words.at(3) = 1;
    futex(words.at(3), FUTEX_WAKE, 1);
    CHECK(comes_true([&] { return waits_at(5) && !waits_at(3); }));
    kill(child.pid(), SIGKILL);
    child.wait();
    CHECK(watch->waiting() == WaiterSummary{});
}

TEST_CASE("private wakes are told where the other node may have waiters, and nowhere else") {
    auto watch = load();
    if (!watch) return;
    Words words;
    Child child([&] {
        for (size_t i = 1; i < 9; i++) {
            futex(words.at(i), FUTEX_WAKE_PRIVATE, static_cast<uint32_t>(i));
        }
        futex(words.at(20), FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, nullptr, nullptr, 0x50);
        futex(words.at(20), FUTEX_WAKE, 1);  // is stopped, and told by whoever stops it
    });
    REQUIRE(watch->join(child.pid(), name, {}));
    WaiterSummary elsewhere;
    for (size_t index : {4, 7, 20}) {
        uint32_t bit = gpr_waiter_bit(address_of(words.at(index)));
        elsewhere.words[bit / 64] |= uint64_t{1} << (bit % 64);
    }
    watch->set_elsewhere(elsewhere);
    const pid_t tid = child.pid();
    child.start();
    CHECK(child.wait() == 0);
    CHECK(is_readable(watch->fd()));
    std::map<uint64_t, WatchedWake> told;
    for (const WatchedWake& wake : fetch(*watch)) {
        CHECK(wake.pid == name);
        CHECK(wake.tid == tid);
        CHECK(elsewhere.may_wait(wake.address));
        told[wake.address] = wake;
    }
    CHECK_FALSE(is_readable(watch->fd()));
    for (size_t index : {4, 7}) {
        REQUIRE(told.contains(address_of(words.at(index))));
        CHECK(told[address_of(words.at(index))].count == static_cast<int32_t>(index));
        CHECK(told[address_of(words.at(index))].bitset == ~0U);
    }
    REQUIRE(told.contains(address_of(words.at(20))));
    CHECK(told[address_of(words.at(20))].count == INT_MAX);
    CHECK(told[address_of(words.at(20))].bitset == 0x50);
}

TEST_CASE("whoever did not join is not looked at") {
    auto watch = load();
    if (!watch) return;
    uint32_t word = 0;
    std::atomic<bool> stop = false;
    std::thread other([&] {
        const timespec moment{0, 1'000'000};
        while (!stop) futex(&word, FUTEX_WAIT_PRIVATE, 0, &moment);
    });
    for (int i = 0; i < 100; i++) futex(&word, FUTEX_WAKE_PRIVATE, 1);
    CHECK(watch->waiting() == WaiterSummary{});
    stop = true;
    other.join();
    CHECK(fetch(*watch).empty());
}

TEST_CASE("threads of a process that joins late are counted for ever") {
    auto watch = load();
    if (!watch) return;
    Words words;
    Child child([&] {
        while (*words.at(9) == 0) futex(words.at(9), FUTEX_WAIT, 0);
        while (*words.at(10) == 0) pause();
    });
    child.start();
    auto sleeps = [&] {
        auto path = "/proc/" + std::to_string(child.pid()) + "/syscall";
        FILE* file = fopen(path.c_str(), "r");
        int number = 0;
        bool found = file && fscanf(file, "%d", &number) == 1 && number == SYS_futex;
        if (file) fclose(file);
        return found;
    };
    REQUIRE(comes_true(sleeps));
    REQUIRE(watch->join(child.pid(), name, {}));
    CHECK(watch->waiting().may_wait(address_of(words.at(9))));
    *words.at(9) = 1;
    futex(words.at(9), FUTEX_WAKE, 1);
    CHECK(comes_true([&] { return !sleeps(); }));
    CHECK(watch->waiting().may_wait(address_of(words.at(9))));
}

TEST_CASE("no wake is lost when nobody fetches them") {
    auto watch = load();
    if (!watch) return;
    constexpr size_t rounds = 3, count = 6000;
    // Never touched: a wake needs no memory.
    auto* base = static_cast<uint32_t*>(
        mmap(nullptr, count * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    REQUIRE(base != MAP_FAILED);
    auto word = [&](size_t i) { return base + i * page / sizeof *base; };
    Child child([&] {
        for (size_t round = 0; round < rounds; round++) {
            for (size_t i = 0; i < count; i++) futex(word(i), FUTEX_WAKE_PRIVATE, 1);
        }
    });
    REQUIRE(watch->join(child.pid(), name, {}));
    child.start();
    CHECK(child.wait() == 0);
    std::map<uint64_t, uint64_t> told;
    for (const WatchedWake& wake : fetch(*watch)) {
        told[wake.address] += static_cast<uint64_t>(wake.count);
    }
    munmap(base, count * page);
    CHECK(told.size() == count);
    bool spilled = false;
    for (const auto& [address, sum] : told) {
        CHECK(sum >= rounds);
        spilled = spilled || sum > rounds;
    }
    CHECK(spilled);  // else the ring held them all, and the test proves nothing
    CHECK(fetch(*watch).empty());
}

TEST_CASE("who opens a file that shows a process is stopped behind it, and nobody else") {
    auto watch = load();
    if (!watch) return;
    Words words;
    const std::vector<const char*> shows{"/proc/self/maps", "/proc/self/mem",
                                         "/proc/1/status",  "/proc/thread-self/smaps",
                                         "/proc/self/stat", "/proc/self/statm"};
    const std::vector<const char*> others{"/proc/self/limits", "/proc/meminfo", "/dev/null",
                                          "/proc/self/no such file"};
    auto open_all = [&] {
        for (const char* name : others) open(name, O_RDONLY);
        for (const char* name : shows) {
            open(name, O_RDONLY);
            ++*words.at(2);
        }
    };
    Child watched(open_all);
    REQUIRE(watch->join(watched.pid(), name, {.openers = true}));
    watched.start();
    for (uint32_t i = 0; i < shows.size(); i++) {
        CAPTURE(shows[i]);
        int status = 0;
        REQUIRE(waitpid(watched.pid(), &status, WUNTRACED) == watched.pid());
        REQUIRE(WIFSTOPPED(status));
        CHECK(WSTOPSIG(status) == SIGSTOP);
        CHECK(*words.at(2) == i);  // the call has not returned
        kill(watched.pid(), SIGCONT);
    }
    CHECK(watched.wait() == 0);
    CHECK(*words.at(2) == shows.size());
    Child unwatched(open_all);
    REQUIRE(watch->join(unwatched.pid(), name, {}));
    unwatched.start();
    CHECK(unwatched.wait() == 0);
    CHECK(*words.at(2) == 2 * shows.size());
}

TEST_CASE("who is interrupted is stopped, unless a stop comes anyway") {
    auto watch = load();
    if (!watch) return;
    Words words;
    auto wait_in_vain = [&] {
        struct sigaction action {};
        action.sa_handler = [](int) {};
        sigaction(SIGUSR1, &action, nullptr);
        sigaction(SIGCONT, &action, nullptr);
        int epoll = epoll_create1(0);
        epoll_event event{};
        for (;;) {
            ++*words.at(2);
            epoll_wait(epoll, &event, 1, -1);
        }
    };
    Child child(wait_in_vain);
    auto waits_again = [&](uint32_t times) {
        auto in_call = [&] {
            std::ifstream in("/proc/" + std::to_string(child.pid()) + "/syscall");
            long number = 0;
            return in >> number && number == SYS_epoll_wait;
        };
        return comes_true([&] { return *words.at(2) == times && in_call(); });
    };
    REQUIRE(watch->join(child.pid(), name, {.interrupted = true}));
    child.start();
    REQUIRE(waits_again(1));

    // A thread stops for its own signal if it is traced.
    syscall(SYS_tgkill, child.pid(), child.pid(), SIGUSR1);
    CHECK(waits_again(2));
    kill(child.pid(), SIGCONT);
    CHECK(waits_again(3));
    int status = 0;
    CHECK(waitpid(child.pid(), &status, WUNTRACED | WNOHANG) == 0);

    // A signal for the process may be taken by another thread.
    kill(child.pid(), SIGUSR1);
    REQUIRE(waitpid(child.pid(), &status, WUNTRACED) == child.pid());
    REQUIRE(WIFSTOPPED(status));
    CHECK(WSTOPSIG(status) == SIGSTOP);
    CHECK(*words.at(2) == 3);  // the call has not returned
    kill(child.pid(), SIGCONT);
    CHECK(waits_again(4));

    REQUIRE(watch->join(child.pid(), name, {}));
    kill(child.pid(), SIGUSR1);
    CHECK(waits_again(5));
    CHECK(waitpid(child.pid(), &status, WUNTRACED | WNOHANG) == 0);
}
