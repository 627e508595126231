#include "syscall/filter.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "syscall/filter_verdict.h"
#include "syscall/name_filter.h"
#include "syscall/resting_filter.h"
#include "syscall/stub_calls.h"
#include "syscall/table.h"

namespace gpr {
namespace {

constexpr uint32_t base = 1u << 14;
constexpr uint64_t program_ip = 0x5555'5555'1000;
constexpr uint64_t stub_ip = uint64_t{stub_high_word} << 32 | 0x1234;

struct Outcome {
    uint32_t action = 0;
    int instructions = 0;
    bool looked_beyond_number = false;  // then the kernel cannot cache "always allowed"
};

// What the kernel does with the instructions that the builder uses.
Outcome run(const std::vector<sock_filter>& program, const seccomp_data& data) {
    Outcome outcome;
    uint32_t a = 0;
    for (size_t pc = 0;; ++pc) {
        REQUIRE(pc < program.size());
        const sock_filter& i = program[pc];
        ++outcome.instructions;
        switch (i.code) {
            case BPF_LD | BPF_W | BPF_ABS:
                REQUIRE(i.k % 4 == 0);
                REQUIRE(i.k + 4 <= sizeof data);
                std::memcpy(&a, reinterpret_cast<const char*>(&data) + i.k, 4);
                if (i.k > offsetof(seccomp_data, arch)) outcome.looked_beyond_number = true;
                break;
            case BPF_JMP | BPF_JA: pc += i.k; break;
            case BPF_JMP | BPF_JEQ | BPF_K: pc += a == i.k ? i.jt : i.jf; break;
            case BPF_JMP | BPF_JGE | BPF_K: pc += a >= i.k ? i.jt : i.jf; break;
            case BPF_JMP | BPF_JGT | BPF_K: pc += a > i.k ? i.jt : i.jf; break;
            case BPF_JMP | BPF_JSET | BPF_K: pc += a & i.k ? i.jt : i.jf; break;
            case BPF_ALU | BPF_AND | BPF_K: a &= i.k; break;
            case BPF_RET | BPF_K:
                outcome.action = i.k;
                REQUIRE(filter_verdict(program, data) == i.k);
                return outcome;
            default: FAIL("unexpected instruction " << i.code);
        }
    }
}

seccomp_data call(uint32_t number, std::array<uint64_t, 6> args = {}, uint64_t ip = program_ip) {
    seccomp_data data{};
    data.nr = static_cast<int>(number);
    data.arch = AUDIT_ARCH_X86_64;
    data.instruction_pointer = ip;
    std::ranges::copy(args, data.args);
    return data;
}

uint32_t action_for(Verdict verdict) {
    switch (verdict) {
        case Verdict::allow: return SECCOMP_RET_ALLOW;
        case Verdict::notify: return SECCOMP_RET_USER_NOTIF;
        case Verdict::refuse: return SECCOMP_RET_ERRNO | ENOSYS;
        case Verdict::unknown: return SECCOMP_RET_ERRNO | EINVAL;
        case Verdict::no_fd: return SECCOMP_RET_ERRNO | EBADF;
    }
    return 0;
}

constexpr Conditions mixed{true, false}, watched{true, true};

FilterOptions options(const Conditions& conditions = {}) {
    FilterOptions o;
    o.fd_base = base;
    o.conditions = conditions;
    return o;
}

std::vector<uint32_t> sample_numbers() {
    std::vector<uint32_t> numbers;
    for (uint32_t n = 0; n < 1100; ++n) numbers.push_back(n);
    for (uint32_t n : {gpr_park_number - 1, gpr_park_number, gpr_park_number + 1, 0x40000000u,
                       0x40000000u + 39u, 0x7fffffffu, 0x80000000u, 0xfffffffeu, 0xffffffffu}) {
        numbers.push_back(n);
    }
    return numbers;
}

std::vector<uint64_t> sample_values() {
    constexpr uint64_t junk = 0xdeadbeef00000000;
    std::vector<uint64_t> values{
        0,          base - 1,   base,           base + 1,       INT32_MAX,   0x80000000,
        0xc0384627, 0xffffffff, uint32_t(-100), uint64_t(-100), junk | base, junk | (base - 1)};
    for (const ArgumentRule& rule : argument_rules()) {
        values.push_back(rule.value);
        values.push_back(junk | rule.value | 128u);  // FUTEX_PRIVATE_FLAG
        values.push_back(rule.value + 1);
    }
    return values;
}

TEST_CASE("home reports what may be about files of the acceptor, only if it has any") {
    for (bool elsewhere : {false, true}) {
        auto with = options();
        with.files_elsewhere = elsewhere;
        auto filter = home_filter(with);
        for (const Row* row : all_rows()) {
            if (row->place == Place::refused || row->home_notify()) continue;
            bool has_rule = std::ranges::any_of(argument_rules(), [&](const ArgumentRule& rule) {
                return rule.number == row->number;
            });
            bool launches = row->number == SYS_sendmsg || row->number == SYS_recvmsg ||
                            row->number == SYS_execve;
            if (has_rule || launches) continue;
            CAPTURE(row->name);
            uint32_t fds = row->fd_arguments();
            for (size_t place = 0; place < 6; ++place) {
                // Junk in the upper half; -1 and AT_FDCWD are nobody's.
                for (uint64_t fd :
                     {uint64_t{base} - 1, uint64_t{base}, uint64_t{0xffffffff00000000} | base,
                      uint64_t{INT32_MAX}, uint64_t{UINT32_MAX}, uint64_t{0}}) {
                    std::array<uint64_t, 6> args{};
                    args[place] = fd;
                    auto number = static_cast<uint32_t>(fd);
                    bool theirs = (fds >> place & 1) && number >= base && number <= INT32_MAX;
                    bool up_to_theirs =
                        row->number == SYS_close_range && place == 1 && number >= base;
                    bool told = elsewhere && (row->path_argument() >= 0 || theirs || up_to_theirs);
                    CHECK(run(filter, call(row->number, args)).action ==
                          action_for(told ? Verdict::notify : Verdict::allow));
                }
            }
        }
    }
}

TEST_CASE("home reports messages on descriptors of the acceptor, and lets the launcher's pass") {
    auto with = options();
    with.files_elsewhere = true;
    auto filter = home_filter(with);
    for (uint32_t number : {SYS_sendmsg, SYS_recvmsg}) {
        CHECK(run(filter, call(number, {base})).action == SECCOMP_RET_USER_NOTIF);
        CHECK(run(filter, call(number, {base - 1})).action == SECCOMP_RET_ALLOW);
    }
}

TEST_CASE("calls that rules give away are reported on both nodes, and no others") {
    constexpr uint64_t junk = 0xdeadbeef00000000;
    for (bool home : {false, true}) {
        auto plain = options();
        auto with = options();
        with.remote_calls = {{SYS_socket, 2}, {SYS_socket, 10}, {SYS_uname}, {SYS_getcpu}};
        auto before = home ? home_filter(plain) : acceptor_filter(plain);
        auto filter = home ? home_filter(with) : acceptor_filter(with);
        for (uint64_t family : {uint64_t{2}, uint64_t{10}, junk | 2}) {
            CHECK(run(filter, call(SYS_socket, {family})).action == SECCOMP_RET_USER_NOTIF);
        }
        for (uint32_t number : {SYS_uname, SYS_getcpu}) {
            CHECK(run(filter, call(number, {7})).action == SECCOMP_RET_USER_NOTIF);
            uint32_t in_stub = home ? SECCOMP_RET_ALLOW : SECCOMP_RET_USER_NOTIF;
            CHECK(run(filter, call(number, {7}, stub_ip)).action == in_stub);
        }
        for (const Row* row : all_rows()) {
            if (row->number == SYS_uname || row->number == SYS_getcpu) continue;
            CAPTURE(row->name);
            CHECK(run(filter, call(row->number, {1, 2})).action ==
                  run(before, call(row->number, {1, 2})).action);
        }
    }
}

TEST_CASE("at the acceptor what sends descriptors or pins memory is reported if asked for") {
    auto with = options();
    auto without = acceptor_filter(with);
    with.watch_sent_fds = with.watch_pins = true;
    auto filter = acceptor_filter(with);
    for (uint32_t number : {SYS_sendmsg, SYS_sendmmsg, SYS_io_uring_register}) {
        CHECK(run(filter, call(number, {base})).action == SECCOMP_RET_USER_NOTIF);
        CHECK(run(without, call(number, {base})).action == SECCOMP_RET_ALLOW);
    }
    constexpr uint64_t xdp = 283;  // SOL_XDP
    CHECK(run(filter, call(SYS_setsockopt, {base, xdp})).action == SECCOMP_RET_USER_NOTIF);
    CHECK(run(filter, call(SYS_setsockopt, {base, 1})).action == SECCOMP_RET_ALLOW);
    CHECK(run(filter, call(SYS_setsockopt, {base - 1, 1})).action == SECCOMP_RET_USER_NOTIF);
    CHECK(run(without, call(SYS_setsockopt, {base, xdp})).action == SECCOMP_RET_ALLOW);
}

TEST_CASE("the filters decide as the table does, for every number and many arguments") {
    auto values = sample_values();
    for (const Conditions& session : {Conditions{}, mixed, watched}) {
        auto acceptor = acceptor_filter(options(session));
        auto home = home_filter(options(session));
        for (uint32_t number : sample_numbers()) {
            for (size_t v = 0; v < values.size(); ++v) {
                // Each value in every place, and mixed with its neighbours.
                for (size_t spread : {0, 1, 2}) {
                    std::array<uint64_t, 6> args;
                    for (size_t i = 0; i < 6; ++i)
                        args[i] = values[(v + i * spread) % values.size()];
                    auto data = call(number, args);
                    auto at_acceptor = acceptor_verdict(number, args, base, session);
                    auto at_home = home_verdict(number, args, session);
                    if (run(acceptor, data).action != action_for(at_acceptor) ||
                        run(home, data).action != action_for(at_home)) {
                        FAIL_CHECK("number " << number << " arguments " << args[0] << ", "
                                             << args[1]);
                    }
                }
            }
        }
    }
}

TEST_CASE("decisions picked by hand") {
    auto f = acceptor_filter(options());
    auto h = home_filter(options());
    auto at_acceptor = [&](uint32_t n, std::array<uint64_t, 6> args = {}) {
        return run(f, call(n, args)).action;
    };
    auto at_home = [&](uint32_t n, std::array<uint64_t, 6> args = {}) {
        return run(h, call(n, args)).action;
    };
    constexpr uint32_t notified = SECCOMP_RET_USER_NOTIF, allowed = SECCOMP_RET_ALLOW;
    constexpr uint32_t refused = SECCOMP_RET_ERRNO | ENOSYS;
    CHECK(at_acceptor(39) == allowed);       // getpid
    CHECK(at_acceptor(110) == notified);     // getppid
    CHECK(at_acceptor(0, {3}) == notified);  // read
    CHECK(at_acceptor(0, {base}) == allowed);
    CHECK(at_acceptor(0, {uint64_t{1} << 32 | 3}) == notified);  // junk above an int
    CHECK(at_acceptor(262, {uint64_t(-100)}) == notified);       // newfstatat(AT_FDCWD)
    CHECK(at_acceptor(33, {base, base + 5}) == allowed);         // dup2
    CHECK(at_acceptor(33, {base, 1}) == notified);
    CHECK(at_acceptor(33, {1, base}) == notified);
    CHECK(at_acceptor(275, {base, 0, base + 1}) == allowed);  // splice
    CHECK(at_acceptor(275, {base, 0, 5}) == notified);
    CHECK(at_acceptor(16, {base, 0x5401}) == allowed);       // TCGETS
    CHECK(at_acceptor(16, {base, 0xae80}) == allowed);       // KVM_RUN
    CHECK(at_acceptor(16, {base, 0xc0384627}) == notified);  // 56 bytes, to and fro
    CHECK(at_acceptor(16, {base, 0x80384627}) == allowed);   // only back
    CHECK(at_acceptor(16, {base, 0x40084627}) == allowed);   // 8 bytes
    CHECK(at_acceptor(9) == notified);                       // mmap
    CHECK(at_acceptor(28) == notified);                      // madvise
    CHECK(at_acceptor(56) == notified);                      // clone
    CHECK(at_acceptor(334) == refused);                      // rseq
    CHECK(at_acceptor(5000) == refused);
    CHECK(at_acceptor(202, {0, 1}) == notified);       // FUTEX_WAKE, maybe of processes outside
    CHECK(at_acceptor(202, {0, 1 | 128}) == allowed);  // FUTEX_WAKE_PRIVATE
    CHECK(at_acceptor(38, {0}) == notified);           // setitimer(ITIMER_REAL)
    CHECK(at_acceptor(38, {1}) == notified);           // ITIMER_VIRTUAL, of which home is told
    CHECK(at_acceptor(36, {1}) == allowed);            // getitimer
    CHECK(at_acceptor(158, {0x1002}) == allowed);      // ARCH_SET_FS
    CHECK(at_acceptor(158, {0x1023}) == notified);
    CHECK(at_home(0, {3}) == allowed);
    CHECK(at_home(9) == notified);
    CHECK(at_home(13) == notified);
    CHECK(at_home(334) == refused);
    CHECK(at_home(56) == allowed);
    CHECK(at_home(157, {22}) == notified);  // PR_SET_SECCOMP
    CHECK(at_home(157, {15}) == allowed);   // PR_SET_NAME
    for (uint32_t wake : {1u, 129u, 3u, 4u, 5u, 7u, 10u}) {
        for (const auto& filter : {acceptor_filter(options(mixed)), home_filter(options(mixed))}) {
            CHECK(run(filter, call(202, {0, wake})).action == notified);
            CHECK(run(filter, call(202, {0, 128})).action == allowed);
            CHECK(run(filter, call(202, {0, 128 | 9})).action == allowed);
        }
    }
    // A watch tells of private wakes at one word; all else is stopped as without it.
    for (const auto& filter : {acceptor_filter(options(watched)), home_filter(options(watched))}) {
        for (uint32_t told : {129u, 138u}) {
            CHECK(run(filter, call(202, {0, told})).action == allowed);
        }
        for (uint32_t stopped : {1u, 10u, 131u, 132u, 133u, 135u}) {
            CHECK(run(filter, call(202, {0, stopped})).action == notified);
        }
    }
    // A word in shared memory may be one that is waited for at home.
    CHECK(run(acceptor_filter(options(mixed)), call(202, {0, 0})).action == notified);
    CHECK(run(acceptor_filter(options()), call(202, {0, 0})).action == notified);
    CHECK(run(acceptor_filter(options()), call(202, {0, 128})).action == allowed);
    CHECK(run(home_filter(options(mixed)), call(202, {0, 0})).action == allowed);
}

TEST_CASE("at home the stub may do anything but park unseen") {
    auto filter = home_filter(options(mixed));
    for (uint32_t number : sample_numbers()) {
        uint32_t action = run(filter, call(number, {1, 1, 1}, stub_ip)).action;
        bool reserved = number == gpr_park_number;
        if (action != (reserved ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ALLOW)) {
            FAIL_CHECK("number " << number);
        }
    }
    for (uint64_t beside : {stub_ip - (1ull << 32), stub_ip + (1ull << 32)}) {
        CHECK(run(filter, call(SYS_mmap, {}, beside)).action == SECCOMP_RET_USER_NOTIF);
    }
}

TEST_CASE("at an acceptor the stub may call what the program may, and what is listed") {
    auto filter = acceptor_filter(options());
    for (uint32_t number : sample_numbers()) {
        for (uint64_t argument : {0, 1, 2, 3, 0x10, 26, 40, 0x100000, 0x1002, 0x2003}) {
            std::array<uint64_t, 6> args{argument, argument, argument, argument};
            uint32_t of_program = run(filter, call(number, args)).action;
            const StubCall* listed = find_stub_call(number);
            bool more = listed != nullptr;
            if (more && listed->argument >= 0) {
                auto end = listed->values.begin() + listed->count;
                more = std::find(listed->values.begin(), end, argument & listed->mask) != end;
            }
            uint32_t wanted = more ? SECCOMP_RET_ALLOW : of_program;
            if (run(filter, call(number, args, stub_ip)).action != wanted) {
                FAIL_CHECK("number " << number << " argument " << argument);
            }
        }
    }
    for (uint32_t never : {SYS_socket, SYS_clone, SYS_unshare, SYS_setns, SYS_mount, SYS_bpf,
                           SYS_userfaultfd, SYS_perf_event_open, SYS_io_uring_setup, SYS_add_key,
                           SYS_keyctl, SYS_ptrace, SYS_open, SYS_openat, SYS_execve, SYS_brk}) {
        CHECK(run(filter, call(never, {}, stub_ip)).action != SECCOMP_RET_ALLOW);
    }
    for (uint64_t beside : {stub_ip - (1ull << 32), stub_ip + (1ull << 32)}) {
        CHECK(run(filter, call(SYS_mmap, {}, beside)).action == SECCOMP_RET_USER_NOTIF);
    }
}

TEST_CASE("a name is always wherever a call has a descriptor, and in no other") {
    auto filter = name_filter(3);
    CHECK(filter.size() < BPF_MAXINSNS);
    const uint32_t stop = SECCOMP_RET_TRACE | name_filter_mark;
    for (const Row* row : all_rows()) {
        CAPTURE(row->name);
        bool always = row->place != Place::refused &&
                      (row->number == SYS_close_range || has_fds_in_memory(row->number));
        CHECK(run(filter, call(row->number)).action == (always ? stop : SECCOMP_RET_ALLOW));
        for (size_t i = 0; i < 6; i++) {
            bool is_fd = row->fd_arguments() >> i & 1 && row->place != Place::refused;
            std::array<uint64_t, 6> args{};
            args[i] = 0x7777'0000'0000'0003;  // the kernel ignores the upper half
            auto expected = is_fd || always ? stop : SECCOMP_RET_ALLOW;
            CHECK(run(filter, call(row->number, args)).action == expected);
            CHECK(run(filter, call(row->number, args, stub_ip)).action == SECCOMP_RET_ALLOW);
        }
        if (row->fd_arguments() == 0 && !always) {
            CHECK_FALSE(run(filter, call(row->number)).looked_beyond_number);
        }
    }
}

TEST_CASE("the filter of a process that has come home stops reads of clocks of CPU time") {
    constexpr uint32_t stop = SECCOMP_RET_TRACE | resting_filter_mark;
    const auto filter = homecoming_filter(false), tracers = homecoming_filter(true);
    auto action = [&](uint32_t number, uint64_t clock) {
        CHECK(run(filter, call(number, {clock}, stub_ip)).action == SECCOMP_RET_ALLOW);
        return run(filter, call(number, {clock})).action;
    };
    for (const uint64_t wall : {0, 1, 4, 5, 6, 7, 11}) {
        CHECK(action(SYS_clock_gettime, wall) == SECCOMP_RET_ALLOW);
    }
    for (const int64_t cpu : {2, 3, -6, -1234 * 8 + 2}) {
        CHECK(action(SYS_clock_gettime, static_cast<uint64_t>(cpu)) == stop);
    }
    CHECK(action(SYS_clock_getres, 2) == SECCOMP_RET_ALLOW);
    CHECK(action(SYS_getrusage, 2) == SECCOMP_RET_ALLOW);
    for (const uint32_t number : {SYS_ptrace, SYS_wait4, SYS_waitid}) {
        CHECK(action(number, 0) == SECCOMP_RET_ALLOW);
        CHECK(run(tracers, call(number)).action == stop);
        CHECK(run(tracers, call(number, {}, stub_ip)).action == SECCOMP_RET_ALLOW);
    }
    CHECK(run(tracers, call(SYS_clone, {CLONE_VM | CLONE_UNTRACED})).action == stop);
    CHECK(run(tracers, call(SYS_clone, {CLONE_VM | CLONE_THREAD})).action == SECCOMP_RET_ALLOW);
    CHECK(run(tracers, call(SYS_clock_gettime, {2})).action == stop);
}

TEST_CASE("the filter of a process at rest stops what ends its rest, and few calls else") {
    constexpr uint32_t stop = SECCOMP_RET_TRACE | resting_filter_mark;
    const auto plain = resting_filter(false, stub_high_word), names = resting_filter(true);
    auto action = [&](uint32_t number, std::array<uint64_t, 6> args = {}) {
        const uint32_t got = run(plain, call(number, args)).action;
        CHECK(run(plain, call(number, args, stub_ip)).action == SECCOMP_RET_ALLOW);
        CHECK((ends_rest(number, args.data()) ? got == stop : true));
        return got;
    };
    constexpr uint64_t shared = 1, private_ = 2, huge = 0x40000, anonymous = 0x20;
    CHECK(action(SYS_mmap, {0, 1, 3, shared}) == stop);
    CHECK(action(SYS_mmap, {0, 1, 3, private_ | anonymous}) == SECCOMP_RET_ALLOW);
    CHECK(action(SYS_mmap, {0, 1, 3, private_ | anonymous | huge}) == stop);
    constexpr uint64_t threads = 0x3d0f00, vfork = 0x4111, memory = 0x111, files = 0x411, fork = 17;
    CHECK(action(SYS_clone, {threads}) == SECCOMP_RET_ALLOW);
    CHECK(action(SYS_clone, {vfork}) == SECCOMP_RET_ALLOW);
    CHECK(action(SYS_clone, {fork}) == SECCOMP_RET_ALLOW);
    CHECK(action(SYS_clone, {memory}) == stop);
    CHECK(action(SYS_clone, {files}) == stop);
    CHECK(action(SYS_clone, {threads | 0x800000}) == stop);
    CHECK(action(SYS_clone3) == stop);
    CHECK_FALSE(ends_rest(SYS_clone3, std::array<uint64_t, 6>{}.data()));
    CHECK(action(SYS_wait4, {1, 0, 0, 0}) == stop);  // it may trace others
    CHECK(action(SYS_ptrace) == stop);
    CHECK(action(SYS_pkey_alloc) == stop);  // to be refused
    CHECK_FALSE(ends_rest(SYS_pkey_alloc, std::array<uint64_t, 6>{}.data()));
    CHECK(action(SYS_shmat) == stop);  // a process that is split may have the segment
    CHECK_FALSE(ends_rest(SYS_shmat, std::array<uint64_t, 6>{}.data()));
    CHECK(action(SYS_setitimer, {2}) == SECCOMP_RET_ALLOW);  // it is taken along
    CHECK(action(SYS_prlimit64, {0, 9, 0x7ffe'0000'1230}) == SECCOMP_RET_ALLOW);
    CHECK(action(SYS_prlimit64, {1234, 9, 0x7ffe'0000'1230}) == stop);  // that may be split
    CHECK(action(SYS_prctl, {36, 1}) == stop);  // it would get gpr's helpers
    CHECK(ends_rest(SYS_prctl, std::array<uint64_t, 6>{36, 1}.data()));
    for (const uint32_t number : {SYS_io_setup, SYS_userfaultfd, SYS_setns, SYS_unshare}) {
        CHECK(action(number) == SECCOMP_RET_ALLOW);
    }
    CHECK(action(SYS_rseq) == (SECCOMP_RET_ERRNO | ENOSYS));
    CHECK(action(SYS_modify_ldt) == (SECCOMP_RET_ERRNO | ENOSYS));
    for (uint32_t number : {SYS_mlock, SYS_mlockall, SYS_set_mempolicy, SYS_mbind}) {
        CHECK(action(number) == SECCOMP_RET_ALLOW);
    }
    for (uint32_t number : {SYS_read, SYS_write, SYS_openat, SYS_newfstatat, SYS_munmap, SYS_brk,
                            SYS_futex, SYS_mprotect, SYS_execve, SYS_sendmsg, SYS_recvmsg}) {
        CHECK(action(number) == SECCOMP_RET_ALLOW);
    }
    CHECK(action(SYS_prctl, {59}) == (SECCOMP_RET_ERRNO | EINVAL));  // SYSCALL_USER_DISPATCH
    CHECK(action(SYS_prctl, {15}) == SECCOMP_RET_ALLOW);             // PR_SET_NAME
    constexpr uint64_t no_follow = 0x100, empty_path = 0x1000;
    CHECK(run(names, call(SYS_openat)).action == stop);
    constexpr uint64_t here = static_cast<uint32_t>(AT_FDCWD);
    CHECK(run(names, call(SYS_openat, {3, 0, O_NOFOLLOW | O_DIRECTORY})).action ==
          SECCOMP_RET_ALLOW);
    CHECK(run(names, call(SYS_openat, {3, 0, O_DIRECTORY})).action == stop);
    CHECK(run(names, call(SYS_openat, {here, 0, O_NOFOLLOW})).action == stop);
    CHECK(run(names, call(SYS_open, {0, O_NOFOLLOW})).action == stop);
    CHECK(run(names, call(SYS_access)).action == stop);
    CHECK(run(names, call(SYS_newfstatat)).action == stop);
    CHECK(run(names, call(SYS_newfstatat, {3, 0, 0, no_follow})).action == SECCOMP_RET_ALLOW);
    CHECK(run(names, call(SYS_newfstatat, {3, 0, 0, empty_path})).action == SECCOMP_RET_ALLOW);
    CHECK(run(names, call(SYS_statx)).action == stop);
    CHECK(run(names, call(SYS_statx, {3, 0, no_follow})).action == SECCOMP_RET_ALLOW);
    for (uint32_t number : {SYS_read, SYS_lstat, SYS_readlink, SYS_getdents64, SYS_execve}) {
        CHECK_FALSE(run(names, call(number)).looked_beyond_number);
    }
}

TEST_CASE("calls of other architectures are refused") {
    for (const auto& filter : {acceptor_filter(options()), home_filter(options())}) {
        for (uint32_t arch : {uint32_t(AUDIT_ARCH_I386), uint32_t(AUDIT_ARCH_AARCH64), 0u}) {
            auto data = call(39);
            data.arch = arch;
            CHECK(run(filter, data).action == (SECCOMP_RET_ERRNO | ENOSYS));
        }
    }
    auto killing = options();
    killing.kill_foreign_arch = true;
    auto data = call(39);
    data.arch = AUDIT_ARCH_I386;
    CHECK(run(acceptor_filter(killing), data).action == SECCOMP_RET_KILL_PROCESS);
}

TEST_CASE("programs and paths are short, and calls allowed by number are cacheable") {
    for (const Conditions& session : {Conditions{}, mixed, watched}) {
        for (const auto& filter :
             {acceptor_filter(options(session)), home_filter(options(session))}) {
            CHECK(filter.size() < BPF_MAXINSNS);
            int longest = 0;
            for (uint32_t n : sample_numbers()) {
                if (n != 202) longest = std::max(longest, run(filter, call(n)).instructions);
            }
            CHECK(longest <= 42);
        }
    }
    auto home = home_filter(options());
    auto acceptor = acceptor_filter(options());
    for (const Row* row : all_rows()) {
        bool has_rule = std::ranges::any_of(argument_rules(), [&](const ArgumentRule& rule) {
            return rule.number == row->number && Conditions{}.meet(rule.condition);
        });
        if (has_rule) continue;
        CAPTURE(row->name);
        if (row->place == Place::native) {
            CHECK_FALSE(run(acceptor, call(row->number)).looked_beyond_number);
        }
        if (row->place != Place::refused && !row->home_notify()) {
            CHECK_FALSE(run(home, call(row->number)).looked_beyond_number);
        }
    }
}

}  // namespace
}  // namespace gpr
