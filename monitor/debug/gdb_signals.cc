#include "monitor/debug/gdb_signals.h"

#include <signal.h>

#include <algorithm>
#include <array>

namespace gpr::debug {

namespace {

constexpr int signal_count = 65;  // 0 (no signal) to 64
constexpr int gdb_unknown = 143;
constexpr int gdb_poll = 33;  // SIGPOLL, which Linux calls SIGIO

constexpr std::array<int, signal_count> make_table() {
    std::array<int, signal_count> table{};
    for (int same = 0; same <= SIGPROF; same++) table[same] = same;
    table[SIGBUS] = 10;
    table[SIGUSR1] = 30;
    table[SIGUSR2] = 31;
    table[SIGSTKFLT] = gdb_unknown;
    table[SIGCHLD] = 20;
    table[SIGCONT] = 19;
    table[SIGSTOP] = 17;
    table[SIGTSTP] = 18;
    table[SIGURG] = 16;
    table[SIGWINCH] = 28;
    table[SIGIO] = 23;
    table[SIGPWR] = 32;
    table[SIGSYS] = 12;
    // Real-time signals; gdb's numbers for the first and the last are out of order.
    table[32] = 77;
    for (int real_time = 33; real_time <= 63; real_time++) table[real_time] = real_time + 12;
    table[64] = 78;
    return table;
}

constexpr auto gdb_numbers = make_table();

}  // namespace

int to_gdb_signal(int signal) {
    return signal >= 0 && signal < signal_count ? gdb_numbers[signal] : gdb_unknown;
}

int from_gdb_signal(int gdb_signal) {
    if (gdb_signal == gdb_poll) return SIGIO;
    const auto* found = std::ranges::find(gdb_numbers, gdb_signal);
    return found == gdb_numbers.end() ? 0 : static_cast<int>(found - gdb_numbers.begin());
}

}  // namespace gpr::debug
