#include "acceptor/daemon/log_allowance.h"

#include <doctest/doctest.h>

using namespace gpr;

namespace {

LogAllowance::Time at(int ms) { return LogAllowance::Time{} + std::chrono::milliseconds(ms); }

}  // namespace

TEST_CASE("so many lines in a time, and the number of the others when it is over") {
    LogAllowance allowance({2, std::chrono::milliseconds(100)});
    CHECK_FALSE(allowance.over(at(0)));
    CHECK(allowance.take(at(10)));
    CHECK(allowance.take(at(20)));
    for (const int ms : {30, 109}) {
        CHECK_FALSE(allowance.take(at(ms)));
        CHECK(allowance.keeps_back() == (ms > 30));
        allowance.keep_back();
    }
    CHECK_FALSE(allowance.over(at(109)));
    CHECK(allowance.over(at(110)) == 2);
    CHECK_FALSE(allowance.keeps_back());
    CHECK_FALSE(allowance.over(at(110)));
    CHECK(allowance.take(at(110)));
    CHECK(allowance.take(at(111)));
    CHECK_FALSE(allowance.take(at(112)));
}

TEST_CASE("what was kept back is told although more comes") {
    LogAllowance allowance({1, std::chrono::milliseconds(100)});
    CHECK(allowance.take(at(0)));
    CHECK_FALSE(allowance.take(at(50)));
    allowance.keep_back();
    CHECK(allowance.take(at(150)));
    CHECK(allowance.over(at(250)) == 1);
}
