#include "monitor/tracee/orphaned_helpers.h"

#include <doctest/doctest.h>

using namespace gpr;

namespace {

OrphanedHelpers with_reaper() {
    OrphanedHelpers orphans;
    const uint64_t args[] = {(1ULL << 40) | PR_SET_CHILD_SUBREAPER, 1};
    orphans.note_prctl(args);
    return orphans;
}

}  // namespace

TEST_CASE("without a reaper in the session nothing is remembered") {
    OrphanedHelpers orphans;
    const uint64_t args[] = {PR_SET_NAME, 1};
    orphans.note_prctl(args);
    CHECK_FALSE(orphans.expected());
    orphans.note_end(7, true);
    CHECK_FALSE(orphans.contains(7));
}

TEST_CASE("a helper is known until its number is somebody else's") {
    OrphanedHelpers orphans = with_reaper();
    CHECK(orphans.expected());
    orphans.note_end(7, true);
    CHECK(orphans.contains(7));
    CHECK_FALSE(orphans.contains(8));
    orphans.note_birth(7);
    CHECK_FALSE(orphans.contains(7));
}

TEST_CASE("another process that ends later may have had its signal lost") {
    OrphanedHelpers orphans = with_reaper();
    orphans.note_end(6, false);
    orphans.note_end(7, true);
    orphans.note_end(8, true);
    CHECK(orphans.is_latest(7));
    CHECK(orphans.is_latest(8));
    orphans.note_end(9, false);
    CHECK_FALSE(orphans.is_latest(7));
    CHECK_FALSE(orphans.is_latest(5));
}
