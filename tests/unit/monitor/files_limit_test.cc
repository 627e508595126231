#include "monitor/tracee/files_limit.h"

#include <doctest/doctest.h>
#include <unistd.h>

namespace gpr {

namespace {

bool is(const rlimit& limit, rlim_t soft, rlim_t hard) {
    return limit.rlim_cur == soft && limit.rlim_max == hard;
}

}  // namespace

TEST_CASE("what was not lowered stays as it is") {
    rlimit now{};
    REQUIRE(getrlimit(RLIMIT_NOFILE, &now) == 0);
    CHECK(is(FilesLimit().restored({5, 7}), 5, 7));
    CHECK(is(FilesLimit::of(getpid(), 0).restored({5, 7}), 5, 7));
    CHECK(is(FilesLimit::of(getpid(), now.rlim_max + 1).restored({5, 7}), 5, 7));
}

TEST_CASE("what was lowered is as before, unless the program has changed it") {
    rlimit now{};
    REQUIRE(getrlimit(RLIMIT_NOFILE, &now) == 0);
    const rlim_t most = now.rlim_cur - 1, soft = now.rlim_cur, hard = now.rlim_max;
    const FilesLimit limit = FilesLimit::of(getpid(), most);
    CHECK(is(limit.restored({most, most}), soft, hard));
    CHECK(is(limit.restored({most, hard}), soft, hard));
    CHECK(is(limit.restored({10, most}), 10, hard));
    CHECK(is(limit.restored({10, 20}), 10, 20));
    limit.restore(getpid());
    REQUIRE(getrlimit(RLIMIT_NOFILE, &now) == 0);
    CHECK(is(now, soft, hard));
}

}  // namespace gpr
