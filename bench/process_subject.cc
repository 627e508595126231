// What a process does with threads, signals and children: run natively and with --split all.
// With --split lib:*libgprbench* it also hands a word to and fro between the nodes.
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <csignal>
#include <mutex>
#include <thread>

#include "bench/subject.h"

extern "C" void bench_remote_turns(std::atomic<uint32_t>* turn, size_t count);

namespace bench {
namespace {

using Turn = std::atomic<uint32_t>;

void sleep_while(Turn& turn, uint32_t value) {
    while (turn.load(std::memory_order_acquire) == value) {
        syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
    }
}

void hand_over(Turn& turn, uint32_t value) {
    turn.store(value, std::memory_order_release);
    syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

// There and back, against a thread that answers `count` times.
Samples play_turns(size_t count, void (*answer)(Turn*, size_t)) {
    alignas(4096) static struct {
        Turn turn;
        char rest[4096 - sizeof(Turn)];
    } page;
    page.turn = 0;
    std::thread other(answer, &page.turn, count);
    Samples samples(count);
    for (size_t i = 0; i < count; i++) {
        uint64_t begin = Ticks::now();
        hand_over(page.turn, 1);
        sleep_while(page.turn, 1);
        samples[i] = Ticks::now() - begin;
    }
    other.join();
    return samples;
}

void answer_here(Turn* turn, size_t count) {
    for (size_t i = 0; i < count; i++) {
        sleep_while(*turn, 0);
        hand_over(*turn, 0);
    }
}

template <typename Act>
Samples repeat(size_t count, Act act) {
    Samples samples(count);
    for (size_t i = 0; i < count; i++) {
        uint64_t begin = Ticks::now();
        act();
        samples[i] = Ticks::now() - begin;
    }
    return samples;
}

Samples create_threads(size_t count) {
    return repeat(count, [] { std::thread([] {}).join(); });
}

Samples fork_children(size_t count) {
    return repeat(count, [] {
        pid_t child = fork();
        if (child < 0) die("fork");
        if (child == 0) _exit(0);
        int status = 0;
        if (waitpid(child, &status, 0) != child || status != 0) die("a child ended badly");
    });
}

std::atomic<size_t> delivered;

// To the thread itself: sent, handled and returned from.
Samples signal_self(size_t count) {
    struct sigaction action {};
    action.sa_handler = [](int) { delivered++; };
    sigaction(SIGUSR1, &action, nullptr);
    delivered = 0;
    pid_t self = getpid();
    auto thread = static_cast<pid_t>(syscall(SYS_gettid));
    Samples samples = repeat(count, [&] { syscall(SYS_tgkill, self, thread, SIGUSR1); });
    if (delivered != count) die("signals were lost");
    return samples;
}

// Many threads that take turns in one lock, compute on their own, and call the kernel: one sample,
// the time of all. `threads` is how many; each does the same, so natively on one processor the time
// grows with them.
Samples work_in_threads(size_t threads) {
    constexpr size_t rounds = 50, alone = 40'000;
    std::mutex lock;
    uint64_t shared = 0;
    uint64_t begin = Ticks::now();
    std::vector<std::thread> workers;
    workers.reserve(threads);
    for (size_t t = 0; t < threads; t++) {
        workers.emplace_back([&, t] {
            uint64_t x = t + 1;
            for (size_t i = 0; i < rounds; i++) {
                for (size_t k = 0; k < alone; k++) {
                    x ^= x << 13;
                    x ^= x >> 7;
                    x ^= x << 17;
                }
                sched_yield();
                std::lock_guard hold(lock);
                shared += x | 1;
            }
        });
    }
    for (std::thread& worker : workers) worker.join();
    if (shared == 0) die("the threads did nothing");
    return {Ticks::now() - begin};
}

}  // namespace
}  // namespace bench

int main() {
    using namespace bench;
    return obey({
        {"turns", [](size_t n) { return play_turns(n, answer_here); }},
        {"remote_turns", [](size_t n) { return play_turns(n, bench_remote_turns); }},
        {"threads", create_threads},
        {"forks", fork_children},
        {"signals", signal_self},
        {"work", work_in_threads},
    });
}
