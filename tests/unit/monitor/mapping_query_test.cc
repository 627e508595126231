#include "monitor/node/mapping_query.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <string>

using namespace gpr;

namespace {

constexpr const char* maps =
    "00400000-00401000 r--p 00001000 fe:01 77                                 /bin/a b\n"
    "00401000-00403000 r-xp 00000000 00:00 0 \n"
    "00500000-00501000 rw-s 00002000 fe:01 78                                 /x\\012y (deleted)\n"
    "7ffc000000-7ffc001000 rw-p 00000000 00:00 0                              [stack]\n";

}  // namespace

TEST_CASE("A line of maps is what an answer says") {
    auto m = find_shown(maps, 0, 0x400fff);
    REQUIRE(m);
    procmap_query query{};
    answer_query(*m, query);
    CHECK(query.vma_start == 0x400000);
    CHECK(query.vma_end == 0x401000);
    CHECK(query.vma_flags == PROCMAP_QUERY_VMA_READABLE);
    CHECK(query.vma_offset == 0x1000);
    CHECK(query.inode == 77);
    CHECK(query.dev_major == 0xfe);
    CHECK(m->name == "/bin/a b");
    CHECK(find_shown(maps, 0, 0x401000)->name.empty());
    CHECK(find_shown(maps, 0, 0x500000)->name == "/x\ny (deleted)");
    CHECK(find_shown(maps, 0, 0x7ffc000000)->name == "[stack]");
}

TEST_CASE("The next mapping is found only where it is asked for") {
    CHECK_FALSE(find_shown(maps, 0, 0x3fffff));
    CHECK_FALSE(find_shown(maps, 0, 0x403000));
    CHECK_FALSE(find_shown(maps, 0, 0x7ffc001000));
    CHECK(find_shown(maps, PROCMAP_QUERY_COVERING_OR_NEXT_VMA, 0x403000)->begin == 0x500000);
    constexpr uint64_t next = PROCMAP_QUERY_COVERING_OR_NEXT_VMA;
    CHECK_FALSE(find_shown(maps, PROCMAP_QUERY_VMA_WRITABLE, 0x400000));
    CHECK(find_shown(maps, next | PROCMAP_QUERY_VMA_WRITABLE, 0)->begin == 0x500000);
    CHECK(find_shown(maps, next | PROCMAP_QUERY_FILE_BACKED_VMA, 0x401000)->begin == 0x500000);
    CHECK_FALSE(find_shown(maps, next | PROCMAP_QUERY_VMA_SHARED, 0x501000));
}

TEST_CASE("What cannot be asked is refused") {
    procmap_query query{};
    CHECK(error_of_query(query) == 0);
    query.query_flags = 0x40;
    CHECK(error_of_query(query) == EINVAL);
    query.query_flags = 0;
    query.vma_name_size = 5;
    CHECK(error_of_query(query) == EINVAL);
    query.vma_name_addr = 0x1000;
    CHECK(error_of_query(query) == 0);
    query.build_id_addr = 0x1000;
    CHECK(error_of_query(query) == EINVAL);
}

TEST_CASE("Only ELF files have a build id") {
    CHECK(build_id_of("/proc/self/exe").size() <= 64);
    CHECK(build_id_of("/proc/self/maps").empty());
    CHECK(build_id_of("/nonexistent").empty());
}
