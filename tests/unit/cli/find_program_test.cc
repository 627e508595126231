#include "tools/find_program.h"

#include <doctest/doctest.h>

#include "tests/unit/temporary_folder.h"

using gpr::exit_status_of;
using gpr::find_program;

TEST_CASE("PATH is searched in order") {
    const gpr::TemporaryFolder folder;
    folder.write("a/tool", "", 0644);
    const std::string second = folder.write("b/tool", "", 0755);
    folder.write("c/tool", "", 0755);
    const std::string search =
        "/nonexistent:" + folder.path() + "/a:" + folder.path() + "/b:" + folder.path() + "/c";
    CHECK(find_program("tool", search).value() == second);
}

TEST_CASE("found but not executable is 126, not found 127") {
    const gpr::TemporaryFolder folder;
    const std::string plain_file = folder.write("a/data", "", 0644);
    const auto in_path = find_program("data", folder.path() + "/a:/nonexistent");
    REQUIRE_FALSE(in_path);
    CHECK(exit_status_of(in_path.error()) == 126);
    CHECK(exit_status_of(find_program(plain_file, "").error()) == 126);
    CHECK(exit_status_of(find_program(folder.path(), "").error()) == 126);
    CHECK(exit_status_of(find_program("./no/such", "").error()) == 127);
    CHECK(exit_status_of(find_program(plain_file + "/below", "").error()) == 127);
    CHECK(exit_status_of(find_program("no-such-tool", "/bin").error()) == 127);
    CHECK(exit_status_of(find_program("", "/bin").error()) == 127);
}

TEST_CASE("folders in PATH are not programs") {
    const gpr::TemporaryFolder folder;
    folder.write("a/tool/file", "");
    const std::string real = folder.write("b/tool", "", 0755);
    CHECK(find_program("tool", folder.path() + "/a:" + folder.path() + "/b").value() == real);
}

TEST_CASE("an empty element of PATH is the current directory") {
    const gpr::TemporaryFolder folder;
    folder.write("tool-of-here", "", 0755);
    const std::filesystem::path before = std::filesystem::current_path();
    std::filesystem::current_path(folder.path());
    const auto found = find_program("tool-of-here", "/nonexistent:");
    std::filesystem::current_path(before);
    REQUIRE(found);
    CHECK(*found == "./tool-of-here");
}
