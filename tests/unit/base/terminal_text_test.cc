#include "base/terminal_text.h"

#include <doctest/doctest.h>

using gpr::without_controls;

TEST_CASE("nothing that a terminal would obey is left, and letters are") {
    CHECK(without_controls("\x1b[31mred\r\x07\x7f") == "?[31mred???");
    CHECK(without_controls("Größe, 大きさ") == "Größe, 大きさ");
    CHECK(without_controls("\xf0\x9f\x98\x80") == "\xf0\x9f\x98\x80");
    CHECK(without_controls(std::string("a\0b", 3)) == "a?b");
    CHECK(without_controls("one\ntwo\t\n") == "one?two??");
    CHECK(without_controls("one\ntwo\t\n", true) == "one\ntwo?\n");
}

TEST_CASE("the controls above ASCII, as UTF-8 and as one byte, and what is no UTF-8") {
    CHECK(without_controls("\xc2\x9b[") == "?[");
    CHECK(without_controls("\x9b[") == "?[");
    CHECK(without_controls("\xc2") == "?");
    CHECK(without_controls("\xe4\xbd[\xf5") == "??[?");
}
