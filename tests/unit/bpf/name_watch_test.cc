// The watch over names in the kernel, with real processes that open files and look for them.
#include "bpf/name_watch.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

using namespace gpr;

namespace {

// Where this is not allowed, the product does without, and there is nothing to test.
std::unique_ptr<NameWatch> load(const std::vector<std::string>& beginnings) {
    auto watch = NameWatch::load();
    if (watch) {
        REQUIRE((*watch)->watch(beginnings));
        return std::move(*watch);
    }
    MESSAGE("skipped: " << watch.error().message());
    REQUIRE(geteuid() != 0);
    return nullptr;
}

// How often a child that does this is stopped by the watch. before: called before it begins, with
// its id.
int stops_of(const std::function<void()>& act, const std::function<void(pid_t)>& before) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        char go;
        if (read(ends[0], &go, 1) != 1) _exit(1);
        act();
        _exit(0);
    }
    REQUIRE(ptrace(PTRACE_SEIZE, pid, nullptr, 0L) == 0);
    before(pid);
    REQUIRE(write(ends[1], "g", 1) == 1);
    close(ends[0]);
    close(ends[1]);
    int stops = 0, status = 0;
    for (;;) {
        REQUIRE(waitpid(pid, &status, __WALL) == pid);
        if (!WIFSTOPPED(status)) break;
        siginfo_t info{};
        REQUIRE(ptrace(PTRACE_GETSIGINFO, pid, nullptr, &info) == 0);
        const bool is_watchs = info.si_signo == SIGSTOP && info.si_code == SI_KERNEL;
        stops += is_watchs;
        ptrace(PTRACE_CONT, pid, nullptr, is_watchs ? 0L : info.si_signo);
    }
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    return stops;
}

int stops_of_member(NameWatch& watch, const std::function<void()>& act) {
    return stops_of(act, [&](pid_t pid) { REQUIRE(watch.join(pid)); });
}

void open_and_close(const char* name) {
    const int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) close(fd);
}

const std::vector<std::string> some{"/dev/zer", "/nowhere/lib"};

}  // namespace

TEST_CASE("each call that opens or looks for a watched name is stopped, and none else") {
    auto watch = load(some);
    if (!watch) return;
    struct stat status {};
    open_how how{};
    how.flags = O_RDONLY;
    const std::vector<std::function<void()>> calls{
        [] { syscall(SYS_open, "/dev/zero", O_RDONLY); },
        [] { syscall(SYS_openat, AT_FDCWD, "/dev/zero", O_RDONLY); },
        [&] { syscall(SYS_openat2, AT_FDCWD, "/dev/zero", &how, sizeof how); },
        [] { syscall(SYS_creat, "/dev/zero", 0600); },
        [&] { syscall(SYS_stat, "/dev/zero", &status); },
        [&] { syscall(SYS_newfstatat, AT_FDCWD, "/dev/zero", &status, 0); },
        [] {
            struct statx all {};
            syscall(SYS_statx, AT_FDCWD, "/dev/zero", 0, STATX_BASIC_STATS, &all);
        },
        [] { syscall(SYS_access, "/dev/zero", R_OK); },
        [] { syscall(SYS_faccessat, AT_FDCWD, "/dev/zero", R_OK); },
        [] { syscall(SYS_faccessat2, AT_FDCWD, "/dev/zero", R_OK, 0); },
    };
    for (size_t i = 0; i < calls.size(); i++) {
        CAPTURE(i);
        CHECK(stops_of_member(*watch, calls[i]) == 1);
    }
    CHECK(stops_of_member(*watch, [] {
              char text[8];
              (void)!readlink("/dev/zero", text, sizeof text);
              (void)!chdir("/dev/zero");
              open_and_close("/dev/null");
              open_and_close("/etc/hostname");
          }) == 0);
}

TEST_CASE("how a name begins decides, whether there is such a file or not") {
    auto watch = load(some);
    if (!watch) return;
    const auto stops = [&](const std::string& name) {
        return stops_of_member(*watch, [&] { open_and_close(name.c_str()); });
    };
    CHECK(stops("/nowhere/libx.so") == 1);
    CHECK(stops("/nowhere/lib") == 1);
    CHECK(stops("/nowhere/li") == 0);
    CHECK(stops("/nowhere") == 0);
    CHECK(stops("nowhere/libx.so") == 0);
    CHECK(stops("../dev/zero") == 0);
    CHECK(stops("") == 0);
    CHECK(stops_of_member(*watch, [] { syscall(SYS_open, 8, O_RDONLY); }) == 0);
}

TEST_CASE("detours in a name are resolved") {
    auto watch = load(some);
    if (!watch) return;
    const auto stops = [&](const std::string& name) {
        return stops_of_member(*watch, [&] { open_and_close(name.c_str()); });
    };
    for (const char* name :
         {"//dev/zero", "/./dev/zero", "/dev//zero", "/dev/./zero", "/etc/../dev/zero",
          "/a/b/c/../../../dev/zero", "/../../dev/zero", "/dev/x/../zero", "/dev/zero/",
          "/dev/zero/.", "/dev/zero/..", "/dev/.x/../zero", "/dev/..x/../zero", "/dev/.../../zero",
          "///..//.//nowhere/./lib/../libx"}) {
        CAPTURE(name);
        CHECK(stops(name) == 1);
    }
    for (const char* name :
         {"/dev/../zero", "/dev/zero/../null", "/dev/./null", "/dev/.zero", "/dev/..zero",
          "/dev/.../zero", "/etc/.", "/etc/..", "/", "//", "/..", "/.", "/a.b/c.", "/x/dev/zero",
          "/nowhere/lib/../x", "/usr/lib/gcc/12/../../../x/libc.so"}) {
        CAPTURE(name);
        CHECK(stops(name) == 0);
    }
}

TEST_CASE("who cannot look at all of a name stops its thread") {
    auto watch = load(some);
    if (!watch) return;
    const auto stops = [&](const std::string& name) {
        return stops_of_member(*watch, [&] { open_and_close(name.c_str()); });
    };
    const std::string long_name = "/" + std::string(200, 'x');
    CHECK(stops(long_name) == 0);
    CHECK(stops(long_name + "/../dev/zero") == 1);
    CHECK(stops("/" + std::string(300, 'x')) == 1);
    const auto repeated = [](const std::string& part, int times) {
        std::string all;
        for (int i = 0; i < times; i++) all += part;
        return all;
    };
    CHECK(stops(repeated("/x", 32)) == 0);
    CHECK(stops(repeated("/x", 40)) == 1);
    CHECK(stops(repeated("/x", 20) + repeated("/..", 20) + "/dev/zero") == 1);
    CHECK(stops(repeated("/x", 20) + repeated("/..", 20) + "/dev/null") == 0);
}

TEST_CASE("of a long beginning 64 bytes count") {
    const std::string beginning = "/" + std::string(80, 'y');
    auto watch = load({beginning});
    if (!watch) return;
    const auto stops = [&](const std::string& name) {
        return stops_of_member(*watch, [&] { open_and_close(name.c_str()); });
    };
    CHECK(stops(beginning) == 1);
    CHECK(stops(beginning.substr(0, 64)) == 1);
    CHECK(stops(beginning.substr(0, 63)) == 0);
}

TEST_CASE("only members are stopped, with all of their threads, and their children are none") {
    auto watch = load(some);
    if (!watch) return;
    const auto act = [] { open_and_close("/dev/zero"); };
    CHECK(stops_of(act, [](pid_t) {}) == 0);
    CHECK(stops_of(act, [&](pid_t pid) {
              REQUIRE(watch->join(pid));
              watch->leave(pid);
          }) == 0);
    CHECK(stops_of_member(*watch, [&] {
              const pid_t child = fork();
              if (child == 0) {
                  act();
                  _exit(0);
              }
              waitpid(child, nullptr, 0);
          }) == 0);
    CHECK(!watch->join(1 << 30));
}
