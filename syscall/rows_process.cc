#include "syscall/rows.h"

namespace gpr {
using namespace rows;
namespace {

constexpr const char* sums =
    "time, memory and page faults are sums over the nodes; context switches and blocks are home's";
constexpr const char* priority = "the thread's shadow at home gets it; the acceptor's does not";
constexpr const char* processors = "of those chosen, each node uses the numbers that it has";

// clang-format off
constexpr Row table[] = {
    {24, "sched_yield", native, full, by_rule, {}},
    {39, "getpid", native, full, plain, {}},
    {56, "clone", special, full, opens, {num, num, raw, raw, num}, "", {there::clone, here::fork},
     gives_back_all},
    {57, "fork", special, full, opens, {}, "", {there::clone, here::fork}, gives_back_all},
    {58, "vfork", special, full, opens, {}, "", {there::clone, here::let_run}, gives_back_all},
    {59, "execve", special, full, Trait::never_returns, {text, argv, argv}, "",
     {there::forward, here::let_run}, gives_back_all},
    {60, "exit", special, full, Trait::never_returns, {num}, "", {there::exit, here::let_run}},
    {61, "wait4", home, full, blocks,
     {num, out(4, Returned::positive), num, out(rusage_size, Returned::positive)}, "",
     {there::as_placed, here::children}},
    {97, "getrlimit", home, full, plain, {num, out(rlimit_size)}, "",
     {there::as_placed, here::limit_query},
     {.limit = {0, -1, -1, 1}}},
    {98, "getrusage", home, partial, plain, {num, out(rusage_size)}, sums,
     {there::as_placed, here::usage}},
    {100, "times", home, full, plain, {out(tms_size)}, "", {there::as_placed, here::usage}},
    {102, "getuid", home, full, plain, {}},
    {104, "getgid", home, full, plain, {}},
    {105, "setuid", home, full, plain, {num}},
    {106, "setgid", home, full, plain, {num}},
    {107, "geteuid", home, full, plain, {}},
    {108, "getegid", home, full, plain, {}},
    {109, "setpgid", home, full, plain, {num, num}},
    {110, "getppid", home, full, plain, {}},
    {111, "getpgrp", home, full, plain, {}},
    {112, "setsid", home, full, plain, {}},
    {113, "setreuid", home, full, plain, {num, num}},
    {114, "setregid", home, full, plain, {num, num}},
    {115, "getgroups", home, full, plain, {num, narrow(out_n(0, 4))}, "", {},
     {.fills_most = 65536 * 4}},
    {116, "setgroups", home, full, plain, {num, narrow(in_n(0, 4))}},
    {117, "setresuid", home, full, plain, {num, num, num}},
    {118, "getresuid", home, full, plain, {out(4), out(4), out(4)}},
    {119, "setresgid", home, full, plain, {num, num, num}},
    {120, "getresgid", home, full, plain, {out(4), out(4), out(4)}},
    {121, "getpgid", home, full, plain, {num}},
    {122, "setfsuid", home, full, plain, {num}},
    {123, "setfsgid", home, full, plain, {num}},
    {124, "getsid", home, full, plain, {num}},
    // Version 1 has one data element, later ones two: what the kernel does not write comes back
    // unchanged.
    {125, "capget", home, full, plain, {inout(8, Returned::always), inout(24)}},
    {126, "capset", home, full, plain, {inout(8, Returned::always), in(24)}},
    {135, "personality", coherent, partial, plain, {num}, "set at home only",
     {there::forward, here::let_run}},
    {140, "getpriority", home, full, plain, {num, num}},
    {141, "setpriority", home, partial, plain, {num, num, num}, priority},
    {142, "sched_setparam", home, partial, plain, {num, in(4)}, priority},
    {143, "sched_getparam", home, full, plain, {num, out(4)}},
    {144, "sched_setscheduler", home, partial, plain, {num, num, in(4)}, priority},
    {145, "sched_getscheduler", home, full, plain, {num}},
    {146, "sched_get_priority_max", native, full, by_rule, {num}},
    {147, "sched_get_priority_min", native, full, by_rule, {num}},
    {148, "sched_rr_get_interval", home, full, plain, {num, out(timespec_size)}},
    {157, "prctl", home, partial, plain, {num, prctl_arg, num, num, num},
     "per-thread CPU settings act where the thread is; the rest acts at home",
     {there::process_state, here::process_state}},
    {158, "arch_prctl", native, full, plain, {num, raw}, "", {there::cpu_state, here::cpu_state}},
    {160, "setrlimit", home, partial, plain, {num, in(rlimit_size)},
     "limits of memory hold at home only", {there::limit, here::limit},
     {.limit = {0, -1, 1}}},
    {186, "gettid", native, full, plain, {}},
    // The sizes count bytes; the kernel rounds, and may use less.
    {203, "sched_setaffinity", coherent, full, plain, {num, num, narrow(in_n(1))}, processors,
     {there::affinity, here::affinity}},
    {204, "sched_getaffinity", home, full, plain, {num, num, narrow(out_n(1))}, processors,
     {there::affinity_query}},
    {218, "set_tid_address", special, full, notify, {num}, "",
     {there::tid_address, here::tid_address}},
    {231, "exit_group", special, full, Trait::never_returns, {num}, "",
     {there::exit_group, here::let_run}, gives_back_all},
    // What the kernel does not write comes back unchanged (rusage without a child that changed
    // state).
    {247, "waitid", home, full, blocks,
     {num, num, inout(siginfo_size), num, inout(rusage_size)}, "",
     {there::as_placed, here::children}},
    {251, "ioprio_set", home, full, plain, {num, num, num}},
    {252, "ioprio_get", home, full, plain, {num, num}},
    {272, "unshare", home, partial, plain, {num},
     "namespaces change at home only; the acceptor's fd table and memory stay shared",
     {there::as_placed, here::children}, gives_back_all},
    {302, "prlimit64", home, partial, plain, {num, num, in(rlimit_size), out(rlimit_size)},
     "limits of memory hold at home only", {there::limit, here::limit},
     {.limit = {1, 0, 2, 3}}},
    {308, "setns", home, partial, split_only, {fd, num}, "namespaces change at home only"},
    {309, "getcpu", native, full, by_rule, {raw, raw, num}},
    {310, "process_vm_readv", home, full, plain, {num, raw, num, raw, num, num}},
    {311, "process_vm_writev", home, full, plain, {num, raw, num, raw, num, num}},
    {312, "kcmp", home, full, plain, {num, num, num, num, num}},
    {314, "sched_setattr", home, partial, plain, {num, raw, num}, priority},
    {315, "sched_getattr", home, full, plain, {num, raw, num, num}},
    {322, "execveat", special, full, Trait::never_returns, {fd, text, argv, argv, num}, "",
     {there::forward, here::let_run}, gives_back_all},
    {324, "membarrier", native, partial, told, {num, num, num},
     "threads on other nodes are ordered by coherence alone", {there::mirror, here::barrier}},
    {334, "rseq", refused, none, plain, {raw, num, num, num},
     "what it protects is of a processor by number, and two hosts share those", {there::forward}},
    {434, "pidfd_open", home, full, opens, {num, num}},
    {435, "clone3", special, full, opens, {raw, num}, "", {there::clone, here::fork},
     gives_back_all},
    {438, "pidfd_getfd", home, full, opens, {fd, num, num}, "", {}, gives_back_all},
    {471, "rseq_slice_yield", refused, none, plain, {}, "needs rseq"},
};
// clang-format on

}  // namespace

std::span<const Row> process_rows() { return table; }

}  // namespace gpr
