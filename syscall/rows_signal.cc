#include "syscall/rows.h"

namespace gpr {
using namespace rows;
namespace {

// Signals arrive at home, so waits for them are made there.
// clang-format off
constexpr Row table[] = {
    {13, "rt_sigaction", coherent, full, notify | told,
     {num, in(sigaction_size), out(sigaction_size), num}, "", {there::action, here::action}},
    {14, "rt_sigprocmask", coherent, full, plain, {num, in(sigset_size), out(sigset_size), num}, "",
     {there::mask, here::mask}},
    {15, "rt_sigreturn", native, full, final, {}, "",
     {there::handler_return, here::handler_return}},
    {34, "pause", home, full, blocks, {}},
    {62, "kill", home, full, plain, {num, num}, "", {},
     {.sends = {1, 0}}},
    // The set may be shorter than sigset_t: what the kernel does not write is unchanged.
    {127, "rt_sigpending", home, full, plain, {inout(sigset_size), num}},
    {128, "rt_sigtimedwait", home, full, blocks,
     {in(sigset_size), out(siginfo_size, Returned::positive), in(timespec_size), num}},
    {129, "rt_sigqueueinfo", home, full, plain, {num, num, in(siginfo_size)}, "", {},
     {.sends = {1, 0}}},
    {130, "rt_sigsuspend", home, full, blocks, {in(sigset_size), num}, "", {there::suspend},
     {.mask = {0}}},
    {131, "sigaltstack", coherent, full, notify, {in(sigaltstack_size), out(sigaltstack_size)}, "",
     {there::alt_stack, here::alt_stack}},
    {200, "tkill", home, full, plain, {num, num}, "", {},
     {.sends = {1, -1, 0}}},
    {219, "restart_syscall", special, full, blocks, {},
     "goes where the interrupted call ran", {there::restart, here::let_run}},
    {234, "tgkill", home, full, plain, {num, num, num}, "", {},
     {.sends = {2, 0, 1}}},
    {282, "signalfd", home, full, opens, {fd, in(sigset_size), num}},
    {289, "signalfd4", home, full, opens, {fd, in(sigset_size), num, num}},
    {297, "rt_tgsigqueueinfo", home, full, plain, {num, num, num, in(siginfo_size)}, "", {},
     {.sends = {2, 0, 1}}},
    {424, "pidfd_send_signal", home, full, plain, {fd, num, in(siginfo_size), num}, "", {},
     {.sends = {1}}},
};
// clang-format on

}  // namespace

std::span<const Row> signal_rows() { return table; }

}  // namespace gpr
