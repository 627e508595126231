#include "base/kernel_features.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/kernel_probes.h"
#include "base/uapi/userfaultfd.h"
#include "base/userfaultfd.h"

TEST_CASE("every feature is listed once and says what it is for and how to get it") {
    const gpr::KernelFeatures features;
    std::set<std::string_view> names;
    for (const gpr::Feature* feature : features.all()) {
        CAPTURE(feature->name);
        CHECK(names.insert(feature->name).second);
        CHECK_FALSE(feature->needed_for.empty());
        CHECK_FALSE(feature->cure.empty());
    }
    // all() must not forget one: the struct is nothing but features.
    CHECK(names.size() == sizeof(gpr::KernelFeatures) / sizeof(gpr::Feature));
}

TEST_CASE("only required features can be lacking") {
    gpr::KernelFeatures features;
    const auto all = features.all();
    const auto required = std::count_if(
        all.begin(), all.end(), [](const gpr::Feature* feature) { return feature->required; });
    CHECK(features.lacking().size() == static_cast<size_t>(required));
    features.uffd_move.present = true;
    CHECK(features.lacking().size() == static_cast<size_t>(required) - 1);
}

TEST_CASE("an experiment's verdict is its errno, and a killed one is EPROTO") {
    CHECK(gpr::probe_in_child([] { return 0; }) == 0);
    CHECK(gpr::probe_in_child([] { return ENOSYS; }) == ENOSYS);
    CHECK(gpr::probe_in_child([] { return raise(SIGKILL); }) == EPROTO);
}

TEST_CASE("probing agrees with doing") {
    const gpr::KernelFeatures features = gpr::KernelFeatures::probe();
    const auto uffd = gpr::open_userfaultfd(O_CLOEXEC);
    CHECK(static_cast<bool>(uffd) == features.userfaultfd.present);
    if (uffd) {
        const auto able = gpr::enable_userfaultfd(*uffd, 0);
        REQUIRE(able);
        CHECK(((*able & UFFD_FEATURE_MOVE) != 0) == features.uffd_move.present);
        // Asked for twice, the second one is refused: what was probed is a fresh one each time.
        CHECK_FALSE(gpr::enable_userfaultfd(*uffd, 0));
    }
    for (const gpr::Feature* feature : features.all()) {
        CAPTURE(feature->name);
        CHECK((feature->present || !feature->detail.empty()));
    }
}

TEST_CASE("probing leaves no descriptor and no child behind") {
    const auto open_files = [] {
        int count = 0;
        for (int fd = 0; fd < 256; ++fd) count += fcntl(fd, F_GETFD) == -1 ? 0 : 1;
        return count;
    };
    const int before = open_files();
    gpr::KernelFeatures::probe();
    CHECK(open_files() == before);
    CHECK(waitpid(-1, nullptr, WNOHANG) == -1);
}
