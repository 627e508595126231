#include "acceptor/worker/known_lookups.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include <array>
#include <cstring>

using namespace gpr;

namespace {

constexpr uint64_t here = static_cast<uint64_t>(AT_FDCWD);
const KnownLookups::Clock::time_point noon{std::chrono::hours(12)};

MarshalledCall call_of(uint32_t number, SyscallArguments args, const char* path) {
    MarshalledCall call;
    call.number = number;
    call.args = args;
    call.in_bytes.resize(std::strlen(path) + 1);
    std::memcpy(call.in_bytes.data(), path, call.in_bytes.size());
    return call;
}

MarshalledCall status_of(const char* path, uint64_t flags = 0) {
    return call_of(SYS_newfstatat, {here, 0x1000, 0x2000, flags}, path);
}

MarshalledCall open_of(const char* path) { return call_of(SYS_openat, {here, 0x1000, 0}, path); }

bool knows(KnownLookups& known, const MarshalledCall& call, int64_t result,
           KnownLookups::Clock::time_point now = noon) {
    const auto lookup = lookup_of(call);
    if (!lookup) return false;
    const auto* answer = known.find(call, *lookup, now);
    return answer && answer->result == result;
}

void keep(KnownLookups& known, const MarshalledCall& call, int64_t result,
          std::initializer_list<uint32_t> ids) {
    const auto which = result < 0 ? KnownLookups::For::path : KnownLookups::For::call;
    known.keep(call, {result, {}}, which, std::vector<uint32_t>(ids), noon);
}

}  // namespace

TEST_CASE("an answer is for the same call about the same path") {
    KnownLookups known;
    keep(known, status_of("/a"), 0, {1});
    CHECK(knows(known, status_of("/a"), 0));
    MarshalledCall elsewhere = status_of("/a");
    elsewhere.args[1] = 0x3000;  // pointers
    elsewhere.args[2] = 0x4000;
    CHECK(knows(known, elsewhere, 0));
    CHECK_FALSE(knows(known, status_of("/a", AT_SYMLINK_NOFOLLOW), 0));
    CHECK_FALSE(knows(known, status_of("/b"), 0));
    CHECK_FALSE(knows(known, call_of(SYS_stat, {0x1000, 0x2000}, "/a"), 0));
}

TEST_CASE("of what is no link a status is the same whether links are followed") {
    const auto lstat = [](const char* path) { return call_of(SYS_lstat, {0x1000, 0x2000}, path); };
    const auto stat = [](const char* path) { return call_of(SYS_stat, {0x1000, 0x2000}, path); };
    const std::array<uint32_t, 1> ids{1};
    KnownLookups known;
    auto keep_file = [&](const MarshalledCall& call) {
        known.keep(call, {0, {}}, KnownLookups::For::file, ids, noon);
    };
    keep_file(status_of("/a"));
    keep_file(status_of("/b", AT_SYMLINK_NOFOLLOW));
    for (const char* path : {"/a", "/b"}) {
        CHECK(knows(known, status_of(path), 0));
        CHECK(knows(known, status_of(path, AT_SYMLINK_NOFOLLOW), 0));
        CHECK_FALSE(knows(known, status_of(path, AT_NO_AUTOMOUNT), 0));
        CHECK_FALSE(knows(known, stat(path), 0));
    }
    keep_file(lstat("/a"));
    CHECK(knows(known, stat("/a"), 0));
    CHECK_FALSE(knows(known, lstat("/b"), 0));
    const auto extended = [](uint64_t flags) {
        return call_of(SYS_statx, {here, 0x1000, flags, 0x7ff, 0x2000}, "/a");
    };
    keep_file(extended(AT_SYMLINK_NOFOLLOW));
    CHECK(knows(known, extended(0), 0));
    keep(known, lstat("/link"), 0, {1});
    CHECK(knows(known, lstat("/link"), 0));
    CHECK_FALSE(knows(known, stat("/link"), 0));
    known.forget(1);
    CHECK(known.size() == 0);
}

TEST_CASE("an answer that has come again depends on what it came with") {
    KnownLookups known;
    keep(known, status_of("/a"), 0, {1, 2});
    keep(known, status_of("/b"), 0, {1});
    keep(known, status_of("/a"), 0, {3});
    CHECK(known.size() == 2);
    known.forget(1);
    CHECK(known.size() == 1);
    CHECK(knows(known, status_of("/a"), 0));
    known.forget(3);
    CHECK_FALSE(knows(known, status_of("/a"), 0));
    known.forget(2);
    CHECK(known.size() == 0);
}

TEST_CASE("what is absent is absent for every call") {
    KnownLookups known;
    keep(known, status_of("/a"), -ENOENT, {1});
    CHECK(knows(known, status_of("/a", AT_SYMLINK_NOFOLLOW), -ENOENT));
    CHECK(knows(known, call_of(SYS_access, {0x1000, 4}, "/a"), -ENOENT));
    CHECK(knows(known, call_of(SYS_readlink, {0x1000, 0x2000, 9}, "/a"), -ENOENT));
    CHECK_FALSE(knows(known, open_of("/a"), -ENOENT));
    known.note_spare(5);
    CHECK(knows(known, open_of("/a"), -ENOENT));
    CHECK_FALSE(knows(known, call_of(SYS_openat, {here, 0x1000, O_CREAT}, "/a"), -ENOENT));
    CHECK_FALSE(knows(known, call_of(SYS_mkdir, {0x1000, 0755}, "/a"), -ENOENT));
}

TEST_CASE("an answer holds until one of its ids is forgotten") {
    KnownLookups known;
    keep(known, status_of("/a"), -ENOENT, {1, 2});
    keep(known, status_of("/b"), -ENOENT, {2, 3});
    known.forget(1);
    CHECK_FALSE(knows(known, status_of("/a"), -ENOENT));
    CHECK(knows(known, status_of("/b"), -ENOENT));
    known.forget(7);
    known.forget(3);
    CHECK(known.size() == 0);
    keep(known, status_of("/a"), 0, {4});
    known.forget_all();
    CHECK_FALSE(knows(known, status_of("/a"), 0));
}

TEST_CASE("an answer does not hold for ever, and there is room for so many") {
    KnownLookups known;
    keep(known, status_of("/a"), 0, {1});
    CHECK(knows(known, status_of("/a"), 0, noon + std::chrono::minutes(59)));
    CHECK_FALSE(knows(known, status_of("/a"), 0, noon + std::chrono::minutes(61)));
    for (int i = 0; i < 50000; i++) {
        keep(known, status_of(("/" + std::to_string(i)).c_str()), 0, {1, 2, 3});
        CHECK(known.size() <= 16384);
    }
    for (int i = 0; i < 200000; i++) keep(known, status_of("/a"), 0, {1, 2, 3});
    known.forget(2);
    CHECK(known.size() == 0);
}

TEST_CASE("descriptors are used up by calls at home") {
    KnownLookups known;
    keep(known, open_of("/a"), -ENOENT, {1});
    known.note_spare(300);
    known.note_call_at_home(SYS_recvmsg);
    CHECK(knows(known, open_of("/a"), -ENOENT));
    for (int i = 0; i < 24; i++) known.note_call_at_home(SYS_pipe);
    CHECK_FALSE(knows(known, open_of("/a"), -ENOENT));
    known.note_spare(300);
    known.note_call_at_home(SYS_recvmmsg);
    CHECK_FALSE(knows(known, open_of("/a"), -ENOENT));
}
