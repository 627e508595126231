// What the measured programs share: a clock that costs no system call, and the talk with bench/run.
//
// A subject reads commands from stdin, one a line: a word and a count. It answers each with one
// line of numbers: nanoseconds for every operation. So bench/run can interleave several subjects.
#pragma once

#include <time.h>
#include <x86intrin.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace bench {

// The time stamp counter, which no supervisor can get in the way of, scaled by the system's clock.
class Ticks {
public:
    static uint64_t now() {
        unsigned cpu;
        uint64_t ticks = __rdtscp(&cpu);
        _mm_lfence();
        return ticks;
    }

    Ticks() : begin_ticks_(now()), begin_ns_(clock_ns()) {
        while (clock_ns() - begin_ns_ < calibration_ns) {
        }
    }

    // The longer ago the beginning, the better the scale.
    [[nodiscard]] double ns_each() const {
        return static_cast<double>(clock_ns() - begin_ns_) /
               static_cast<double>(now() - begin_ticks_);
    }

private:
    static constexpr uint64_t calibration_ns = 50'000'000;
    static uint64_t clock_ns() {
        timespec t{};
        clock_gettime(CLOCK_MONOTONIC, &t);
        return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
    }

    uint64_t begin_ticks_;
    uint64_t begin_ns_;
};

[[noreturn]] inline void die(const char* what) {
    std::perror(what);
    std::exit(1);
}

// A command gets its count and returns the ticks of every operation.
using Samples = std::vector<uint64_t>;
using Commands = std::map<std::string, std::function<Samples(size_t count)>>;

// Until "quit" or the end of stdin.
inline int obey(const Commands& commands) {
    Ticks ticks;
    std::printf("ready\n");
    std::fflush(stdout);
    char line[128];
    while (std::fgets(line, sizeof line, stdin)) {
        char word[64] = "";
        size_t count = 0;
        if (std::sscanf(line, "%63s %zu", word, &count) < 1 || std::string(word) == "quit") break;
        auto command = commands.find(word);
        if (command == commands.end()) {
            std::fprintf(stderr, "unknown command %s\n", word);
            return 2;
        }
        Samples samples = command->second(count);
        double scale = ticks.ns_each();
        std::string answer;
        for (uint64_t sample : samples) {
            answer += std::to_string(static_cast<uint64_t>(static_cast<double>(sample) * scale));
            answer += ' ';
        }
        answer += '\n';
        std::fwrite(answer.data(), 1, answer.size(), stdout);
        std::fflush(stdout);
    }
    return 0;
}

// Work for a processor alone: integer and memory, nothing that a compiler can foresee.
inline uint64_t compute(uint64_t seed, size_t rounds) {
    static uint64_t table[4096];
    uint64_t x = seed | 1;
    for (size_t i = 0; i < rounds; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        table[x % 4096] += x;
    }
    return x + table[seed % 4096];
}

constexpr size_t compute_rounds = 4'000'000;  // about 10 ms

inline Samples measure_compute(size_t count) {
    Samples samples;
    volatile uint64_t result = 1;
    for (size_t i = 0; i < count; i++) {
        uint64_t begin = Ticks::now();
        result = compute(result, compute_rounds);
        samples.push_back(Ticks::now() - begin);
    }
    return samples;
}

}  // namespace bench
