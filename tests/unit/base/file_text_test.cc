#include "base/file_text.h"

#include <doctest/doctest.h>

#include "tests/unit/temporary_folder.h"

namespace gpr {
namespace {

TEST_CASE("a file is read to its end, however long it is") {
    TemporaryFolder folder;
    std::string text(10000, 'x');
    CHECK(read_file(folder.write("file", text)) == text);
    CHECK(read_file(folder.write("empty", "")) == "");
    CHECK(text_of("/proc/self/comm").ends_with("\n"));
}

TEST_CASE("what cannot be read says nothing, and ends nobody") {
    CHECK_FALSE(read_file("/proc/self/no-such-file"));
    CHECK_FALSE(read_file("/proc/self/mem"));  // as files of a process that ends: opened, then EIO
    CHECK(text_of("/proc/self/mem").empty());
}

}  // namespace
}  // namespace gpr
