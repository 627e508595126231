// What the manual pages say of options beyond a line of help. An empty line divides paragraphs.
#pragma once

#include <string_view>

namespace gpr::details {

// Of gpr exec and gpr attach.

inline constexpr std::string_view acceptor =
    R"(HOST[:PORT], [V6]:PORT, unix:/path, or 'local' for an acceptor inside this command; the
port is 7711 where none is given. A name of the table 'acceptor' in the configuration
stands for its address, here and wherever else an address is wanted. Without one anywhere
exec is an error.

Repeated, the program runs over all of them: each rule says by RULE@NAME which one it is for.
An acceptor that no rule is for is an error. The token is one for all: put it into the token
file of each.)";

inline constexpr std::string_view split = "See SPLIT RULES in gpr(1).";

inline constexpr std::string_view device =
    "Repeated, the program counts them in this order. See DEVICES in gpr(1).";

inline constexpr std::string_view device_count =
    "Nobody else gets them while the session lives: of those named by --device, or of all.";

inline constexpr std::string_view token_file = "Nobody but its owner may be able to read the file.";

inline constexpr std::string_view gdb =
    R"(PROGRAM stands before its first instruction, that of the dynamic linker, until gdb has come
and says 'continue'. One gdb is waited for, without a time limit; whoever connects first may
do anything with the program, so prefer 127.0.0.1, or 'gpr gdbserver -- PROGRAM' in a pipe.
When gdb detaches, or its connection is lost, the program goes on without it; when gdb quits,
it ends the program, as it ends what it has started itself. See gpr-gdbserver(1).)";

inline constexpr std::string_view metrics =
    R"(Counts and latency histograms of the session while it runs. Nobody is asked for a token;
127.0.0.1:9464 is for this host alone.)";

inline constexpr std::string_view stats =
    R"(It is on stderr, with advice where much was lost. JSON is written to FILE before the parent
can see the exit. For each function of a rule fn: that was called, it says how often a
thread went there because of it, and how many of these were calls; the others are returns
from what it had called here.

A FILE of gpr's options is what it is: a regular file is replaced, or a log appended to, also
behind a link; pipes, terminals and devices are written to, /dev/fd/N and >(COMMAND) of a shell
as well; and '-' is standard output. A pipe that nobody reads is refused.)";

inline constexpr std::string_view mask_cpu =
    R"(The program runs although the acceptor's CPU lacks features that this one has: they are
hidden by GLIBC_TUNABLES. A program that asks the CPU itself may still use them, and is
then ended by SIGILL; gpr says so.)";

inline constexpr std::string_view log_level =
    R"(With '--log-level info' alone it tells on stderr what happens, as 'ssh -v' does: the
connection, the programs that start and end and where, and which rule each library met.)";

inline constexpr std::string_view record =
    R"(It has the last 64 MiB, with the seed of chaos. It is complete however the session ends,
also when it hangs and is killed. FILE is a regular one. 'sim --replay FILE', built with
gpr's tests, checks that the same decisions are taken again, and tells which thread waits
for which page in the end.)";

inline constexpr std::string_view no_gravity =
    R"(Without it, a thread at the acceptor goes home when the calls that it makes and the pages
that it needs from there have cost as much as that does, and one at home that needs pages
of the acceptor goes there.)";

inline constexpr std::string_view no_bpf =
    R"(With BPF, sessions whose threads live on two nodes need not stop threads that wake futexes,
but every system call on those hosts costs some 60 ns more while such a session lives.)";

// Of gpr view.

inline constexpr std::string_view view_listen =
    R"(127.0.0.1:8080, [::1]:8080, or localhost; without a port one that is free. No other host can
reach it. From one, use 'ssh -L PORT:127.0.0.1:PORT THIS_HOST', with the same port on both
sides, and open the address that gpr view has printed.)";

// Of gpr acceptor.

inline constexpr std::string_view exported =
    R"(They see PATH, and all below it, read-only but for devices; / is all. Without it they may
ask for libraries and what describes them (/usr, /lib, /opt/rocm*, /opt/amdgpu*,
/etc/OpenCL, /etc/vulkan), for the devices of accelerators, and for what their drivers tell
in /proc and /sys.)";

inline constexpr std::string_view allow_network =
    R"(The families are inet, inet6 and netlink. Each session that asks for it has a network of
its own, with the addresses of this host's link to its router (without one, of its first
link), which pasta(1) of the package passt joins to this host's; it has to be installed.
They reach whatever this host reaches, by TCP, UDP, and ping where
net.ipv4.ping_group_range allows, but nothing of this host itself, by whichever of its
addresses. Of a session that does not ask for it the box has no network.)";

inline constexpr std::string_view allow_host_network =
    R"(They may make sockets of all families that need no privilege. RDMA, exact addresses and the
lowest latency need it. They may listen on ports from 1024 on; this host's abstract unix
sockets they reach only where the kernel has no Landlock of Linux 6.12, which the acceptor
tells when it starts.)";

inline constexpr std::string_view allow_raw_network =
    "They are this host's root. Of several of these options the widest counts.";

inline constexpr std::string_view session_ports =
    R"(TCP and UDP. Each gets as many as --max-sessions allows, and what it listens on without
naming a port is one of them. Without this option pasta opens the ports from 1024 on that
sessions listen on, within a second or two, if no other has them; that of Debian 12 does
not.)";

inline constexpr std::string_view max_sessions = "Who comes then is told so and may try again.";

inline constexpr std::string_view session_memory =
    R"(Memory and swap. Limits are those of a cgroup v2 of the session's own, but for processes
and threads, which the kernel counts for the session's user (see --uid-range); where one
that was asked for cannot be had the acceptor does not start, and says why; where memory
cannot be limited by itself, it says so. 'gpr health' lists which can. A session that goes
beyond its memory is ended, with a message that names the limit.)";

inline constexpr std::string_view cache =
    R"(A program or library that a session has had once need not travel again: its content, named by
its SHA-256, is kept here, apart for each token, and dropped when it has not been used for the
longest time. What comes for later sessions takes a quarter of the link's time at most, and leaves
a tenth of the file system free.)";

inline constexpr std::string_view session_pids =
    R"(Of programs, and of gpr for them. Beyond them a session gets EAGAIN. Each process has at
most 65536 descriptors of this host.)";

inline constexpr std::string_view uid_range =
    R"(User and group ids, such as 2100000000-2100065535. Its programs may do with the files that
they are shown what everybody may. Where ids cannot be had the acceptor says what is
weaker, and with this option does not start. With 'none' sessions run as the acceptor's own
user, which is root, without its capabilities.)";

inline constexpr std::string_view drain =
    R"(On SIGTERM or SIGINT nobody is admitted any more, and all sessions are asked to leave: what
they have here goes back to their initiators, where the programs go on. What cannot go back, such as
a program that uses a device of this host, runs on here; when the time is over, or on a second
signal, it is ended. Without this option all sessions are ended at once.)";

inline constexpr std::string_view acceptor_metrics =
    R"(Counts of all sessions that are and were here. Nobody is asked for a token: choose an
address that only those reach who may know.)";

inline constexpr std::string_view pretend_without =
    "For tests of unlike hosts. Features are named as in /proc/cpuinfo.";

}  // namespace gpr::details
