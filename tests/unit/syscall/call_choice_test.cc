#include "syscall/call_choice.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>

namespace gpr {
namespace {

bool says(const char* call, std::string_view why) {
    const Row* row = find_row(std::string_view(call));
    REQUIRE(row != nullptr);
    return why_not_remote(*row).find(why) != std::string::npos;
}

TEST_CASE("families are called as in man socket, in any case") {
    CHECK(family_called("inet") == AF_INET);
    CHECK(family_called("INET6") == AF_INET6);
    CHECK(family_called("Local") == AF_UNIX);
    CHECK(family_called("xdp") == AF_XDP);
    for (const char* bad : {"", "AF_INET", "inet ", "inet7"}) CHECK_FALSE(family_called(bad));
    CHECK(name_of_family(AF_UNIX) == "unix");
    CHECK(name_of_family(9999).empty());
    for (std::string_view name : family_names()) {
        CHECK(name_of_family(*family_called(name)) == name);
    }
}

TEST_CASE("calls are found by their names") {
    CHECK(find_row(std::string_view("uname"))->number == SYS_uname);
    CHECK(find_row(std::string_view("sysinf")) == nullptr);
    for (const Row* row : all_rows()) CHECK(find_row(std::string_view(row->name)) == row);
}

TEST_CASE("what is one process's on every node cannot be given away, and why is said") {
    for (const char* call : {"mmap", "brk", "rt_sigaction", "execve", "fork", "exit_group"}) {
        CHECK(says(call, "must be the same on every node"));
    }
    CHECK(says("read", "runs where its descriptor is"));
    CHECK(says("openat", "use path:"));
    CHECK(says("unlink", "use path:"));
    CHECK(says("gettid", "runs where that is"));
    CHECK(says("futex", "runs where that is"));
    for (const char* call : {"kill", "getuid", "wait4", "chdir", "umask", "shmget", "pidfd_open"}) {
        CHECK(says(call, "is home's"));
    }
    CHECK(says("rseq", "do not have it"));
    for (const char* call : {"uname", "sysinfo", "getcpu", "io_uring_setup", "memfd_create",
                             "socket", "eventfd2", "timerfd_create", "epoll_create1"}) {
        CHECK(why_not_remote(*find_row(std::string_view(call))).empty());
    }
}

TEST_CASE("calls that may be given away leave nothing behind that home must know") {
    for (const Row* row : all_rows()) {
        if (!row->by_rule()) continue;
        CAPTURE(row->name);
        CHECK((row->place == Place::home || row->place == Place::native));
        CHECK(row->path_argument() < 0);
        CHECK(row->fd_arguments() == 0);
        CHECK_FALSE(row->has(Trait::maps_memory));
        CHECK_FALSE(row->never_returns());
    }
}

TEST_CASE("what sessions need of the acceptor's network") {
    const RemoteCall inet{SYS_socket, AF_INET}, local{SYS_socket, AF_UNIX}, xdp{SYS_socket, AF_XDP},
        any{SYS_socket}, pair{SYS_socketpair}, other{SYS_uname};
    const auto needs = [](std::vector<RemoteCall> calls) {
        const NetworkNeeds n = network_needs(calls);
        return std::pair(n.network ? rule_text(*n.network) : "", n.raw ? rule_text(*n.raw) : "");
    };
    CHECK(needs({other, local, pair}) == std::pair(std::string(), std::string()));
    CHECK(needs({local, inet}) == std::pair(std::string("sock:inet"), std::string()));
    CHECK(needs({any}) == std::pair(std::string("sys:socket"), std::string()));
    CHECK(needs({inet, xdp}) == std::pair(std::string("sock:inet"), std::string("sock:xdp")));
    CHECK(make_unix_sockets(std::vector{other, local}));
    CHECK(make_unix_sockets(std::vector{pair}));
    CHECK_FALSE(make_unix_sockets(std::vector{other, inet}));
}

TEST_CASE("a call is covered by its number and its family, of which the kernel takes an int") {
    const RemoteCall inet{SYS_socket, AF_INET};
    CHECK(inet.covers(SYS_socket, AF_INET));
    CHECK(inet.covers(SYS_socket, 0xdeadbeef00000000 | AF_INET));
    CHECK_FALSE(inet.covers(SYS_socket, AF_INET6));
    CHECK_FALSE(inet.covers(SYS_socketpair, AF_INET));
    CHECK(RemoteCall{SYS_uname}.covers(SYS_uname, 12345));
}

}  // namespace
}  // namespace gpr
