#include "syscall/lookup_call.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cstring>
#include <string>

using namespace gpr;

namespace {

constexpr uint64_t here = static_cast<uint64_t>(AT_FDCWD);

MarshalledCall call_of(uint32_t number, SyscallArguments args, const std::string& path) {
    MarshalledCall call;
    call.number = number;
    call.args = args;
    call.in_bytes.resize(path.size() + 1);
    std::memcpy(call.in_bytes.data(), path.c_str(), call.in_bytes.size());
    return call;
}

bool looks_up(uint32_t number, SyscallArguments args, const std::string& path = "/a/b") {
    const MarshalledCall call = call_of(number, args, path);
    CHECK((may_look_up(number) || !lookup_of(call)));
    return lookup_of(call).has_value();
}

OnLookups on(uint32_t number, SyscallArguments args = {}) {
    return on_lookups(number, args.data());
}

}  // namespace

TEST_CASE("calls that look up a path have nothing else to fail of") {
    CHECK(looks_up(SYS_stat, {}));
    CHECK(looks_up(SYS_newfstatat, {here, 0, 0, AT_SYMLINK_NOFOLLOW}));
    CHECK(looks_up(SYS_newfstatat, {0xffffff9c, 0, 0, 0}));  // the kernel looks at an int
    CHECK_FALSE(looks_up(SYS_newfstatat, {here, 0, 0, 0x40}));
    CHECK_FALSE(looks_up(SYS_newfstatat, {3}));
    CHECK(looks_up(SYS_statx, {here, 0, 0, STATX_ALL}));
    CHECK_FALSE(looks_up(SYS_statx, {here, 0, 0, STATX__RESERVED}));
    CHECK_FALSE(looks_up(SYS_statx, {here, 0, AT_STATX_FORCE_SYNC | AT_STATX_DONT_SYNC}));
    CHECK(looks_up(SYS_access, {0, 7}));
    CHECK_FALSE(looks_up(SYS_access, {0, 8}));
    CHECK(looks_up(SYS_faccessat2, {here, 0, 4, AT_EACCESS}));
    CHECK_FALSE(looks_up(SYS_faccessat2, {here, 0, 4, 1}));
    CHECK(looks_up(SYS_readlink, {0, 0, 1}));
    CHECK_FALSE(looks_up(SYS_readlink, {0, 0, 0}));
    CHECK(looks_up(SYS_openat, {here, 0, O_WRONLY | O_CLOEXEC | O_DIRECTORY}));
    CHECK_FALSE(looks_up(SYS_openat, {here, 0, O_WRONLY | O_CREAT}));
    CHECK_FALSE(looks_up(SYS_openat, {here, 0, O_WRONLY | O_TMPFILE}));
    CHECK_FALSE(looks_up(SYS_openat, {here, 0, O_ACCMODE}));
    CHECK_FALSE(looks_up(SYS_openat2, {here}));
    CHECK_FALSE(looks_up(SYS_unlink, {}));
    CHECK(looks_up(SYS_getcwd, {}));
}

TEST_CASE("the path names something in a directory") {
    for (const char* path : {"a", "/a", "../a", "a/..b", "a//b", "..."}) {
        CHECK(looks_up(SYS_stat, {}, path));
    }
    for (const char* path : {"", "/", "a/", ".", "..", "a/.", "a/.."}) {
        CHECK_FALSE(looks_up(SYS_stat, {}, path));
    }
    CHECK(looks_up(SYS_stat, {}, std::string(512, 'a')));
    CHECK_FALSE(looks_up(SYS_stat, {}, std::string(513, 'a')));
    CHECK_FALSE(looks_up(SYS_stat, {}, std::string("a\0b", 3)));
}

TEST_CASE("the same call about another path") {
    auto path_of = [](std::string_view path) {
        const auto other = with_path(call_of(SYS_stat, {}, "/a"), path);
        return other ? std::string(lookup_of(*other)->path) : "none";
    };
    for (const char* path : {"/a/c", "longer", "a//c", "../c"}) CHECK(path_of(path) == path);
    for (const char* path : {"", ".", "a/..", "a/", "/"}) CHECK(path_of(path) == "none");
    CHECK(path_of(std::string_view("b\0c", 3)) == "none");
    CHECK(path_of(std::string(600, 'b')) == "none");
    CHECK_FALSE(with_path(call_of(SYS_getcwd, {}, ""), "a"));
    CHECK(directory_part("/a/b") == "/a/");
    CHECK(directory_part("a//b") == "a//");
    CHECK(directory_part("/b") == "/");
    CHECK(directory_part("b").empty());
}

TEST_CASE("an answer is made for the place where the call has room for it") {
    MarshalledCall call = call_of(SYS_stat, {}, "/a");
    const std::vector<std::byte> status(144, std::byte{7});
    CHECK(answer_with(call, status).empty());
    call.pieces.push_back({.in_length = 3});
    call.pieces.push_back({.capacity = 144, .slot = 1, .returned = Returned::success});
    const auto answer = answer_with(call, status);
    REQUIRE(answer.size() == 8 + 144);
    const auto taken = scatter(call, answer);
    REQUIRE(taken);
    REQUIRE(taken->writes.size() == 1);
    CHECK(std::ranges::equal(taken->writes[0].bytes, status));
    CHECK(answer_with(call, std::vector<std::byte>(145)).empty());
}

TEST_CASE("calls that change what a process finds") {
    CHECK(on(SYS_chdir) == OnLookups::forgets);
    CHECK(on(SYS_setresuid) == OnLookups::forgets);
    CHECK(on(SYS_execve) == OnLookups::forgets);
    CHECK(on(SYS_prlimit64) == OnLookups::nothing);
    CHECK(on(SYS_prlimit64, {0, 7, 0x1000}) == OnLookups::forgets);
    CHECK(on(SYS_clone, {CLONE_FS | CLONE_THREAD}) == OnLookups::nothing);
    CHECK(on(SYS_clone, {SIGCHLD}) == OnLookups::nothing);
    CHECK(on(SYS_clone, {CLONE_FS | SIGCHLD}) == OnLookups::forgets);
    CHECK(on(SYS_clone3, {0x7ffd12350a00}) == OnLookups::forgets);
    CHECK(on(SYS_ioctl, {3, FS_IOC_SETFLAGS}) == OnLookups::forgets_all);
    CHECK(on(SYS_ioctl, {3, FS_IOC_GETFLAGS}) == OnLookups::nothing);
    CHECK(on(SYS_mkdir) == OnLookups::nothing);  // inotify tells
}
