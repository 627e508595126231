#include "mm/migration_trend.h"

#include <doctest/doctest.h>

using gpr::MigrationTrend;

namespace {
void note(MigrationTrend& trend, int reads, int writes) {
    for (int i = 0; i < reads; i++) {
        trend.note_read();
        if (i < writes) trend.note_write();
    }
}
}  // namespace

TEST_CASE("a trend is not told from a few pages") {
    MigrationTrend trend;
    CHECK_FALSE(trend.predicts_write(1));
    note(trend, 7, 7);
    CHECK_FALSE(trend.predicts_write(1));
    note(trend, 1, 0);
    CHECK(trend.predicts_write(1));
}

TEST_CASE("a write is foretold if one followed every fourth read") {
    MigrationTrend enough, few;
    note(enough, 40, 10);
    note(few, 40, 9);
    CHECK(enough.predicts_write(3));
    CHECK_FALSE(few.predicts_write(3));
}

TEST_CASE("some pages are always left to learn from") {
    MigrationTrend trend;
    note(trend, 100, 100);
    int left = 0;
    for (uint64_t page = 0; page < 160; page++) left += trend.predicts_write(page) ? 0 : 1;
    CHECK(left == 10);
}

TEST_CASE("what was long ago counts less") {
    MigrationTrend trend;
    note(trend, 1000, 1000);
    CHECK(trend.predicts_write(1));
    note(trend, 600, 0);
    CHECK_FALSE(trend.predicts_write(1));
}
