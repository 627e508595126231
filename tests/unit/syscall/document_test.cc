#include "syscall/document.h"

#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "syscall/table.h"

namespace gpr {
namespace {

TEST_CASE("docs/syscalls.md is what the table says") {
    std::ifstream file(GPR_SOURCE_ROOT "/docs/syscalls.md");
    REQUIRE(file);
    std::stringstream text;
    text << file.rdbuf();
    bool same = text.str() == syscalls_markdown();
    CHECK_MESSAGE(same, "out of date: run `meson compile -C BUILD syscalls-doc`");
}

TEST_CASE("the JSON form has every row") {
    auto rows = nlohmann::json::parse(syscalls_json());
    REQUIRE(rows.size() == all_rows().size());
    CHECK(rows[0]["name"] == "read");
    CHECK(rows[0]["number"] == 0);
    CHECK(rows[0]["class"] == "fd-owner");
    CHECK(rows[0]["support"] == "full");
    CHECK(rows[0]["arguments"] == nlohmann::json::array({"fd", "out[arg2]", "number"}));
}

}  // namespace
}  // namespace gpr
