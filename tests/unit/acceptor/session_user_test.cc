#include "acceptor/box/session_user.h"

#include <doctest/doctest.h>

#include <set>
#include <vector>

#include "tests/unit/temporary_folder.h"

namespace gpr {
namespace {

TEST_CASE("a range is two ids above root's, or none") {
    CHECK(parse_user_ids("none")->none());
    CHECK(*parse_user_ids("100000-165535") == UserIds{100'000, 65'536});
    CHECK(*parse_user_ids("7-7") == UserIds{7, 1});
    for (const char* text : {"", "7", "-", "7-", "-7", "0-7", "8-7", "1-4294967295", "1-2147483647",
                             "1-2x", "a-b", " 1-2", "1--2", "None"}) {
        CAPTURE(text);
        const auto refused = parse_user_ids(text);
        REQUIRE_FALSE(refused);
        CHECK(refused.error().message().find("--uid-range wants FIRST-LAST") == 0);
    }
}

TEST_CASE("ids that somebody has are refused, with the name") {
    const UserIds ids{1000, 10};
    const auto refusal = [&](const std::string& file, const std::string& text) {
        const TemporaryFolder folder;
        if (!file.empty()) folder.write(file, text);
        const auto checked = check_nobody_has(ids, folder.path());
        return checked ? "" : checked.error().message();
    };
    CHECK(refusal("", "").empty());
    CHECK(refusal("passwd", "root:x:0:0::/:\nann:x:1010:1010::/:\nbob:x:999:1::/:\n").empty());
    CHECK(refusal("passwd", "ann:x:1000:5::/:\n").find("'ann' of ") != std::string::npos);
    CHECK(refusal("passwd", "ann:x:1009:5::/:\n").find("--uid-range") != std::string::npos);
    CHECK(refusal("group", "adm:x:1005:\n").find("'adm' of ") != std::string::npos);
    CHECK(refusal("group", "adm:x:4:syslog\nbroken\nalso:broken:1005x:\n").empty());
    CHECK(refusal("subuid", "ann:900:100\nbob:1010:65536\n").empty());
    CHECK(refusal("subuid", "ann:900:101\n").find("'ann' of ") != std::string::npos);
    CHECK(refusal("subgid", "ann:0:4294967296\n").find("'ann' of ") != std::string::npos);
    CHECK(check_nobody_has(default_user_ids));
}

TEST_CASE("each session has an id of its own, until the last copy of its lock is gone") {
    const TemporaryFolder folder;
    const auto list = folder.path() + "/users";
    const UserIds ids{2'100'000'000, 3};
    std::vector<SessionUser> users;
    std::set<uint32_t> seen;
    for (int i = 0; i < 3; ++i) {
        auto user = SessionUser::take(ids, list);
        REQUIRE(user);
        seen.insert(user->id());
        users.push_back(std::move(*user));
    }
    CHECK(seen == std::set<uint32_t>{2'100'000'000, 2'100'000'001, 2'100'000'002});
    const auto refused = SessionUser::take(ids, list);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message().find("all 3 user ids") == 0);

    const uint32_t freed = users[1].id();
    Fd copy(dup(users[1].lock()));
    users.erase(users.begin() + 1);
    CHECK_FALSE(SessionUser::take(ids, list));
    copy.reset();
    CHECK(SessionUser::take(ids, list)->id() == freed);
}

TEST_CASE("without a range, or without a list, there is no id") {
    CHECK(SessionUser::take({}, "/no/such/folder/list")->id() == 0);
    const auto refused = SessionUser::take(default_user_ids, "/no/such/folder/list");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message().find("/no/such/folder/list") != std::string::npos);
}

}  // namespace
}  // namespace gpr
