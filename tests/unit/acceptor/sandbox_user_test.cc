// What a box with a user of its own has of the host's root: nothing.
#include <fcntl.h>
#include <linux/keyctl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/unit/acceptor/sandbox_helpers.h"
#include "tests/unit/temporary_folder.h"

using namespace gpr;
using namespace gpr::test;

namespace {

constexpr uint32_t nobody = 2'100'065'000;
constexpr auto here = static_cast<uint64_t>(AT_FDCWD);

SandboxOptions of_nobody() {
    SandboxOptions options;
    options.user = nobody;
    return options;
}

long try_open(StubProcess& process, const std::string& path, uint64_t flags) {
    return process.call(SYS_openat, {here, process.put(path), flags});
}

uint64_t word(int number) { return static_cast<uint64_t>(int64_t{number}); }

}  // namespace

TEST_CASE("a process in the box is nobody of this host, and root only to itself") {
    auto sandbox = make_sandbox(of_nobody());
    auto process = make_process(*sandbox, 100);
    const auto all_four = fmt::format("{0}\t{0}\t{0}\t{0}", nobody);
    for (const pid_t pid : {process.process.host_pid, sandbox->init_pid()}) {
        CHECK(status_field(pid, "Uid") == all_four);
        CHECK(status_field(pid, "Gid") == all_four);
        CHECK(status_field(pid, "Groups").find_first_not_of(" 0") == std::string::npos);
        CHECK(namespace_link(pid, "user") == namespace_link(sandbox->init_pid(), "user"));
        CHECK(namespace_link(pid, "user") != namespace_link(getpid(), "user"));
    }
    for (const long call : {SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid}) {
        CHECK(process.call(call) == 0);
    }
    CHECK(process.call(SYS_getpid) == 100);
    CHECK(process.call(SYS_setresuid, {0, nobody, 0}) == -EINVAL);
    CHECK(process.call(SYS_unshare, {CLONE_NEWUSER}) == -EPERM);
    CHECK(process.call(SYS_unshare, {CLONE_NEWNET}) == -EPERM);
    const pid_t pid = process.process.host_pid;
    CHECK(std::stoull(status_field(pid, "CapEff"), nullptr, 16) == 1UL << CAP_CHECKPOINT_RESTORE);
    CHECK(process.call(SYS_ptrace, {16 /* PTRACE_ATTACH */, 1, 0, 0}) == -EPERM);
}

TEST_CASE("of exported files it reads what everybody may read") {
    const TemporaryFolder folder;
    folder.write("secret", "x", 0600);
    folder.write("open", "x", 0644);
    folder.write("closed/file", "x", 0644);
    REQUIRE(chmod((folder.path() + "/closed").c_str(), 0700) == 0);
    auto options = of_nobody();
    options.mounts = {{"/shown", folder.path()}};
    REQUIRE(chmod(folder.path().c_str(), 0755) == 0);
    const mode_t before = umask(077);
    auto sandbox = make_sandbox(options);
    umask(before);
    auto process = make_process(*sandbox, 100);
    CHECK(try_open(process, "/shown/open", O_RDONLY) >= 0);
    CHECK(try_open(process, "/shown/secret", O_RDONLY) == -EACCES);
    CHECK(try_open(process, "/shown/closed/file", O_RDONLY) == -EACCES);
    CHECK(try_open(process, "/shown/new", O_RDWR | O_CREAT) == -EROFS);
    CHECK(process.call(SYS_chmod, {process.put("/shown/open"), 0666}) == -EROFS);
}

TEST_CASE("a device that it was given opens, though its node is the host's root's") {
    const char* const node = "/dev/userfaultfd";
    struct stat status {};
    if (stat(node, &status) == -1 || (status.st_mode & S_IROTH) != 0) {
        MESSAGE("skipped: no " << node << " that only root may open");
        return;
    }
    auto options = of_nobody();
    options.mounts = {{node, node}, {"/dev/other-name", "/dev/null"}};
    auto sandbox = make_sandbox(options);
    auto process = make_process(*sandbox, 100);
    CHECK(try_open(process, node, O_RDWR) >= 0);
    CHECK(try_open(process, "/dev/other-name", O_RDWR) >= 0);
    CHECK(try_open(process, "/dev/full", O_RDWR) == -ENOENT);
    CHECK(process.call(SYS_chmod, {process.put(node), 0666}) == -EROFS);
    struct stat after {};
    REQUIRE(stat(node, &after) == 0);
    CHECK(after.st_uid == status.st_uid);
    CHECK(after.st_mode == status.st_mode);
}

TEST_CASE("keyrings and inotify instances are its own") {
    auto sandbox = make_sandbox(of_nobody());
    auto process = make_process(*sandbox, 100);
    for (const int ring : {KEY_SPEC_SESSION_KEYRING, KEY_SPEC_USER_KEYRING}) {
        const long ours = syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, ring, 1);
        const long its = process.call(SYS_keyctl, {KEYCTL_GET_KEYRING_ID, word(ring), 1});
        if (ours < 0 || its == -ENOSYS) continue;
        CHECK(its > 0);
        CHECK(its != ours);
        const auto by_number = static_cast<uint64_t>(ours);
        CHECK(process.call(SYS_keyctl, {KEYCTL_DESCRIBE, by_number}) < 0);
    }
    int taken = 0;
    while (taken < 10'000 && process.call(SYS_inotify_init1, {IN_CLOEXEC}) >= 0) ++taken;
    CHECK(taken > 0);
    CHECK(taken < 10'000);
    const Fd ours(inotify_init1(IN_CLOEXEC));
    CHECK(static_cast<bool>(ours));
}

TEST_CASE("two boxes have nothing of each other") {
    auto options = of_nobody();
    auto first = make_sandbox(options);
    ++options.user;
    auto second = make_sandbox(options);
    auto one = make_process(*first, 100);
    auto other = make_process(*second, 100);
    CHECK(status_field(one.process.host_pid, "Uid") != status_field(other.process.host_pid, "Uid"));
    CHECK(namespace_link(one.process.host_pid, "user") !=
          namespace_link(other.process.host_pid, "user"));
}
