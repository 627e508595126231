#include "syscall/rows.h"

namespace gpr {
using namespace rows;
namespace {

constexpr const char* wakes = "wakes are reported once threads live on two nodes";
constexpr const char* cpu_timers =
    "timers of CPU time count that of every node; where code runs on several, to some milliseconds";

// clang-format off
constexpr Row table[] = {
    {35, "nanosleep", native, full, blocks,
     {in(timespec_size), out(timespec_size, Returned::interrupted)}},
    {36, "getitimer", home, full, plain, {num, out(itimer_size)}, cpu_timers,
     {there::interval_timer, here::timer},
     {.timer = {true, -1, 1}}},
    {37, "alarm", home, full, plain, {num}},
    {38, "setitimer", home, full, plain, {num, in(itimer_size), out(itimer_size)},
     cpu_timers, {there::interval_timer, here::timer},
     {.timer = {true, 1, 2}}},
    {96, "gettimeofday", native, full, by_rule, {out(16), out(8)}},
    {159, "adjtimex", home, full, plain, {inout(timex_size, Returned::always)}},
    {164, "settimeofday", home, full, plain, {in(16), in(8)}},
    {201, "time", native, full, by_rule, {out(8)}},
    {202, "futex", native, full, blocks, {raw, num, num, raw, raw, num}, wakes,
     {there::futex, here::futex}},
    {222, "timer_create", home, full, plain, {num, in(sigevent_size), out(4)}, cpu_timers,
     {there::timer, here::timer}},
    {223, "timer_settime", home, full, plain, {num, num, in(itimer_size), out(itimer_size)},
     cpu_timers, {there::timer, here::timer},
     {.timer = {true, 2, 3, 1}}},
    {224, "timer_gettime", home, full, plain, {num, out(itimer_size)}, cpu_timers,
     {there::timer, here::timer},
     {.timer = {true, -1, 1}}},
    {225, "timer_getoverrun", home, full, plain, {num}, "", {there::timer, here::timer},
     {.timer = {true}}},
    {226, "timer_delete", home, full, plain, {num}, "", {there::timer, here::timer}},
    {227, "clock_settime", home, full, plain, {num, in(timespec_size)}},
    {228, "clock_gettime", native, full, by_rule, {num, out(timespec_size)},
     "CPU-time clocks are a sum over the nodes", {there::as_placed, here::usage}},
    {229, "clock_getres", native, full, by_rule, {num, out(timespec_size)}},
    {230, "clock_nanosleep", native, full, blocks,
     {num, num, in(timespec_size), out(timespec_size, Returned::interrupted)}},
    {273, "set_robust_list", native, full, plain, {num, num}},
    {274, "get_robust_list", native, full, plain, {num, raw, raw}},
    {283, "timerfd_create", home, full, opens | by_rule, {num, num}},
    {286, "timerfd_settime", fd_owner, full, plain, {fd, num, in(itimer_size), out(itimer_size)}},
    {287, "timerfd_gettime", fd_owner, full, plain, {fd, out(itimer_size)}},
    {305, "clock_adjtime", home, full, plain, {num, inout(timex_size, Returned::always)}},
    {449, "futex_waitv", native, full, blocks, {raw, num, num, raw, num}, "",
     {there::futex, here::as_placed}},
    {454, "futex_wake", native, full, plain, {raw, num, num, num}, wakes,
     {there::futex, here::futex}},
    {455, "futex_wait", native, full, blocks, {raw, num, num, num, raw, num}, "",
     {there::futex, here::as_placed}},
    {456, "futex_requeue", native, full, plain, {raw, num, num, num}, wakes,
     {there::futex, here::futex}},
};
// clang-format on

}  // namespace

std::span<const Row> time_rows() { return table; }

}  // namespace gpr
