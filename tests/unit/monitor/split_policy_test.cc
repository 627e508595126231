#include "monitor/rules/split_policy.h"

#include <doctest/doctest.h>

#include "monitor/tracee/fault_origin.h"

namespace gpr {
namespace {

SplitRule rule(SplitKind kind, std::string pattern = "") { return {kind, std::move(pattern), ""}; }

const std::string program = "/usr/bin/program";

TEST_CASE("a library rule places its matches, the executable and nothing else") {
    SplitPolicy policy({rule(SplitKind::lib, "libcuda*.so*")});
    CHECK(policy.mixed());
    CHECK(!policy.begins_remotely());
    CHECK(policy.place("/usr/lib/libcuda.so.1", program).code == CodeClass::remote);
    CHECK(policy.place("/usr/lib/libcudart-12.so", program).code == CodeClass::remote);
    CHECK(policy.place(program, program).code == CodeClass::neutral);
    CHECK(policy.has_gravity());
    CHECK(policy.place("/usr/lib/libc.so.6", program).code == CodeClass::neutral);
    CHECK(policy.place("/usr/lib/notlibcuda.so.1", program).code == CodeClass::neutral);
}

TEST_CASE("a pattern with a slash is for the path, without one for the name") {
    SplitPolicy by_path({rule(SplitKind::lib, "/opt/*/libx.so")});
    CHECK(by_path.place("/opt/vendor/libx.so", program).code == CodeClass::remote);
    CHECK(by_path.place("/usr/lib/libx.so", program).code == CodeClass::neutral);
    SplitPolicy by_name({rule(SplitKind::lib, "opt*")});
    CHECK(by_name.place("/opt/vendor/libx.so", program).code == CodeClass::neutral);
}

TEST_CASE("the first rule that matches decides") {
    SplitPolicy home_first({rule(SplitKind::home, "libx.so"), rule(SplitKind::lib, "lib*")});
    CHECK(home_first.place("/usr/lib/libx.so", program).code == CodeClass::home);
    CHECK(home_first.place("/usr/lib/liby.so", program).code == CodeClass::remote);
    SplitPolicy lib_first({rule(SplitKind::lib, "lib*"), rule(SplitKind::home, "libx.so")});
    CHECK(lib_first.place("/usr/lib/libx.so", program).code == CodeClass::remote);
}

TEST_CASE("functions of a library leave its class alone") {
    SplitRule deflate = rule(SplitKind::fn, "libz.so*");
    deflate.symbols = "deflate";
    SplitPolicy policy({deflate});
    CHECK(policy.mixed());
    CHECK(policy.has_functions());
    CHECK(!policy.has_gravity());
    CHECK(policy.place("/usr/lib/libz.so.1", program).code == CodeClass::neutral);
    CHECK(policy.place(program, program).code == CodeClass::home);
    CHECK(policy.function_rules("/usr/lib/libz.so.1") == std::vector{deflate});
    CHECK(policy.function_rules("/usr/lib/libzstd.so.1").empty());
    // Everything is there already.
    SplitPolicy whole({rule(SplitKind::all), deflate});
    CHECK(!whole.has_functions());
    CHECK(whole.function_rules("/usr/lib/libz.so.1").empty());
}

TEST_CASE("a rule may name the executable itself") {
    SplitPolicy policy({rule(SplitKind::lib, "program")});
    CHECK(policy.place(program, program).code == CodeClass::remote);
}

TEST_CASE("whole programs have no classes unless something is kept at home") {
    SplitPolicy whole({rule(SplitKind::all)});
    CHECK(!whole.mixed());
    CHECK(whole.begins_remotely());
    CHECK(whole.place("/usr/lib/libc.so.6", program).code == CodeClass::neutral);
    CHECK(!SplitPolicy({rule(SplitKind::all), rule(SplitKind::lib, "lib*")}).mixed());

    SplitPolicy kept({rule(SplitKind::all), rule(SplitKind::home, "libui*")});
    CHECK(kept.mixed());
    CHECK(kept.begins_remotely());
    CHECK(kept.place("/usr/lib/libui.so", program).code == CodeClass::home);
    CHECK(kept.place("/usr/lib/libc.so.6", program).code == CodeClass::remote);
    CHECK(kept.place(program, program).code == CodeClass::remote);
}

TEST_CASE("a program that has begun here is on both nodes, and its code at the acceptor") {
    const SplitPolicy policy({rule(SplitKind::all)}, true);
    CHECK(policy.mixed());
    CHECK(policy.begins_remotely());
    CHECK(policy.place("/usr/lib/libc.so.6", "/usr/bin/x").code == CodeClass::remote);
}

TEST_CASE("a fetch is told from a read by where the instruction is") {
    constexpr uint64_t page = 0x7000;
    CHECK(may_be_fetch(0x7000, page, 0x1000));
    CHECK(may_be_fetch(0x7fff, page, 0x1000));
    CHECK(!may_be_fetch(0x8000, page, 0x1000));
    // The longest instruction that begins before the page and reaches into it.
    CHECK(may_be_fetch(0x7000 - 14, page, 0x1000));
    CHECK(!may_be_fetch(0x7000 - 15, page, 0x1000));
}

}  // namespace
}  // namespace gpr
