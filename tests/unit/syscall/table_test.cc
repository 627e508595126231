#include "syscall/table.h"

#include <asm/ioctls.h>
#include <asm/termbits.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <linux/prctl.h>
#include <linux/sockios.h>
#include <mqueue.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/times.h>
#include <sys/timex.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "syscall/park.h"
#include "syscall/request.h"
#include "syscall/rows.h"

namespace gpr {
namespace {

// __NR_name number, from the header that this system has.
std::map<uint32_t, std::string> header_numbers() {
    std::map<uint32_t, std::string> numbers;
    std::ifstream header("/usr/include/x86_64-linux-gnu/asm/unistd_64.h");
    for (std::string line; std::getline(header, line);) {
        std::istringstream words(line);
        std::string define, name;
        uint32_t number = 0;
        if (words >> define >> name >> number && define == "#define" && name.starts_with("__NR_")) {
            numbers[number] = name.substr(5);
        }
    }
    return numbers;
}

const Row& row(const char* name) {
    for (const Row* r : all_rows()) {
        if (std::string(r->name) == name) return *r;
    }
    FAIL("no row " << name);
    return *all_rows().front();
}

TEST_CASE("every call of the system's header has its row") {
    auto numbers = header_numbers();
    if (numbers.empty()) {
        MESSAGE("skipped: no asm/unistd_64.h here");
        return;
    }
    CHECK(numbers.size() >= 350);
    for (const auto& [number, name] : numbers) {
        if (number >= syscall_limit) continue;  // newer than the table
        const Row* found = find_row(number);
        REQUIRE_MESSAGE(found != nullptr, name);
        CHECK_MESSAGE(found->name == name, number);
    }
}

TEST_CASE("numbers newer than the header") {
    CHECK(row("cachestat").number == 451);
    CHECK(row("mseal").number == 462);
    CHECK(row("open_tree_attr").number == 467);
    CHECK(row("rseq_slice_yield").number == syscall_limit - 1);
    CHECK(find_row(syscall_limit) == nullptr);
    CHECK(find_row(400) == nullptr);
    CHECK(find_row(0x40000000) == nullptr);
    CHECK(gpr_park_number >= syscall_limit);
}

TEST_CASE("names are unique and rows are ordered") {
    std::set<std::string> names;
    int previous = -1;
    for (const Row* r : all_rows()) {
        CHECK_MESSAGE(names.insert(r->name).second, r->name);
        CHECK(r->number > previous);
        previous = r->number;
        if (r->support == Support::partial) CHECK_MESSAGE(*r->caveat != '\0', r->name);
        if (r->place == Place::refused) CHECK_MESSAGE(r->support == Support::none, r->name);
    }
}

TEST_CASE("what every node must know has a handler on both sides") {
    for (const Row* r : all_rows()) {
        CAPTURE(r->name);
        // But rseq, of a program that had registered before it was attached.
        if (r->place == Place::refused && std::string_view(r->name) != "rseq") {
            CHECK(r->handlers.there == AtAcceptor::as_placed);
        }
        if (r->place != Place::coherent && r->place != Place::special) continue;
        CHECK(r->handlers.there != AtAcceptor::as_placed);
        CHECK(r->handlers.here != AtHome::as_placed);
    }
}

TEST_CASE("what changes an address space is known on every node") {
    for (const Row* row : all_rows()) {
        if (row->details.memory == MemoryCall::none) continue;
        CAPTURE(row->name);
        CHECK(row->place == Place::coherent);
        CHECK(row->told_unasked());
        CHECK(row->home_notify());
    }
    CHECK(memory_call_of(SYS_pkey_mprotect) == MemoryCall::protect);
    CHECK(memory_call_of(SYS_mlock2) == MemoryCall::lock);
    CHECK(memory_call_of(syscall_limit) == MemoryCall::none);
}

TEST_CASE("details name arguments that the call has") {
    auto is_argument = [](const Row& row, int8_t place, Kind kind) {
        return place < 0 || row.arguments[static_cast<size_t>(place)].kind == kind;
    };
    for (const Row* row : all_rows()) {
        CAPTURE(row->name);
        const Details& d = row->details;
        if (d.transfer.reads || d.transfer.writes) CHECK(row->arguments[0].kind == Kind::fd);
        CHECK(is_argument(*row, d.sends.signal, Kind::scalar));
        CHECK(is_argument(*row, d.limit.resource, Kind::scalar));
        CHECK(is_argument(*row, d.timer.flags, Kind::scalar));
    }
}

TEST_CASE("argument shapes refer to sensible arguments") {
    for (const Row* r : all_rows()) {
        CAPTURE(r->name);
        bool ended = false;
        for (size_t i = 0; i < 6; ++i) {
            const Argument& a = r->arguments[i];
            if (a.kind == Kind::none) ended = true;
            CHECK_FALSE((ended && a.kind != Kind::none));
            if (a.kind == Kind::iovec) CHECK(r->arguments[a.index].kind == Kind::scalar);
            if (a.kind != Kind::buffer) continue;
            if (a.extent == Extent::fixed) CHECK(a.unit > 0);
            if (a.extent == Extent::counted || a.extent == Extent::bits) {
                CHECK(r->arguments[a.index].kind == Kind::scalar);
            }
            if (a.extent == Extent::valued) CHECK(r->arguments[a.index] == shape::inout(4));
            if (a.direction == Direction::in) CHECK(a.returned == Returned::nothing);
            if (a.direction != Direction::in) CHECK(a.returned != Returned::nothing);
        }
        if (r->place == Place::fd_owner) CHECK(r->arguments[0].kind == Kind::fd);
    }
}

TEST_CASE("struct sizes are the headers'") {
    using namespace rows;
    CHECK(stat_size == sizeof(struct stat));
    CHECK(statx_size == sizeof(struct statx));
    CHECK(statfs_size == sizeof(struct statfs));
    CHECK(timespec_size == sizeof(timespec));
    CHECK(itimer_size == sizeof(itimerspec));
    CHECK(rusage_size == sizeof(rusage));
    CHECK(rlimit_size == sizeof(rlimit));
    CHECK(siginfo_size == sizeof(siginfo_t));
    CHECK(sigaltstack_size == sizeof(stack_t));
    CHECK(sigevent_size == sizeof(sigevent));
    CHECK(sysinfo_size == sizeof(struct sysinfo));
    CHECK(tms_size == sizeof(struct tms));
    CHECK(timex_size == sizeof(timex));
    CHECK(epoll_event_size == sizeof(epoll_event));
    CHECK(pollfd_size == sizeof(pollfd));
    CHECK(sembuf_size == sizeof(sembuf));
    CHECK(mq_attr_size == sizeof(mq_attr));
    CHECK(io_event_size == sizeof(io_event));
    CHECK(io_uring_params_size == sizeof(io_uring_params));
}

TEST_CASE("request codes and sizes are the headers'") {
    CHECK(ioctl_argument(TCGETS) == shape::out(sizeof(struct termios)));
    CHECK(ioctl_argument(TCSETSF) == shape::in(sizeof(struct termios)));
    CHECK(ioctl_argument(TCGETS2) == shape::out(sizeof(struct termios2)));
    CHECK(ioctl_argument(TCSETSF2) == shape::in(sizeof(struct termios2)));
    CHECK(ioctl_argument(TIOCGWINSZ) == shape::out(8));
    CHECK(ioctl_argument(TIOCSWINSZ) == shape::in(8));
    CHECK(ioctl_argument(TIOCGPGRP) == shape::out(4));
    CHECK(ioctl_argument(TIOCSPGRP) == shape::in(4));
    CHECK(ioctl_argument(TIOCGSID) == shape::out(4));
    CHECK(ioctl_argument(TIOCGPTN) == shape::out(4));
    CHECK(ioctl_argument(TIOCSPTLCK) == shape::in(4));
    CHECK(ioctl_argument(TIOCSIG) == shape::num);
    CHECK(ioctl_argument(FIONREAD) == shape::out(4));
    CHECK(ioctl_argument(FIONBIO) == shape::in(4));
    CHECK(ioctl_argument(FIOCLEX) == shape::num);
    CHECK(ioctl_argument(FIONCLEX) == shape::num);
    CHECK(ioctl_argument(TCSBRK) == shape::num);
    CHECK(ioctl_argument(TCFLSH) == shape::num);
    CHECK(ioctl_argument(SIOCGIFFLAGS) == shape::inout(40));
    CHECK(ioctl_argument(0xdeadbeef) == shape::raw);
    CHECK(fcntl_argument(F_SETLKW) == shape::in(sizeof(struct flock)));
    CHECK(fcntl_argument(F_OFD_GETLK) == shape::inout(sizeof(struct flock)));
    CHECK(fcntl_argument(F_GETOWN_EX) == shape::out(sizeof(struct f_owner_ex)));
    CHECK(fcntl_argument(F_DUPFD_CLOEXEC) == shape::num);
    CHECK(fcntl_argument(F_GETFL) == shape::num);
    CHECK(prctl_argument(PR_SET_NAME) == shape::text);
    CHECK(prctl_argument(PR_GET_NAME) == shape::out(16));
    CHECK(prctl_argument(PR_SET_PDEATHSIG) == shape::num);
}

TEST_CASE("request tables have no code twice") {
    for (auto requests : {ioctl_requests(), fcntl_requests(), prctl_requests()}) {
        std::set<uint32_t> codes;
        for (const Request& r : requests) CHECK_MESSAGE(codes.insert(r.code).second, r.name);
    }
}

TEST_CASE("classes that correctness rests on") {
    // Forwarded, each of these broke a program or hung it.
    for (const char* name :
         {"arch_prctl", "sched_yield", "futex", "clock_gettime", "getpid", "gettid", "rt_sigreturn",
          "set_robust_list", "membarrier", "getcpu", "nanosleep"}) {
        CHECK_MESSAGE(row(name).place == Place::native, name);
    }
    for (const char* name : {"clone", "clone3", "fork", "vfork", "execve", "execveat", "exit",
                             "exit_group", "restart_syscall", "set_tid_address"}) {
        CHECK_MESSAGE(row(name).place == Place::special, name);
    }
    for (const char* name : {"mmap", "munmap", "mprotect", "mremap", "brk", "madvise", "shmat",
                             "rt_sigaction", "sigaltstack"}) {
        CHECK_MESSAGE(row(name).place == Place::coherent, name);
        CHECK_MESSAGE(row(name).home_notify(), name);
    }
    CHECK(row("rseq").place == Place::refused);
    CHECK(row("getppid").place == Place::home);
    CHECK(row("read").place == Place::fd_owner);
    CHECK(row("read").blocks());
    CHECK(row("exit_group").never_returns());
    CHECK(row("openat").changes_fds());
    CHECK(row("rt_sigprocmask").place == Place::coherent);
    CHECK_FALSE(row("rt_sigprocmask").home_notify());
    CHECK(row("sched_setaffinity").place == Place::coherent);
    CHECK_FALSE(row("sched_setaffinity").home_notify());
}

}  // namespace
}  // namespace gpr
