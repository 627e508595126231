#include "acceptor/worker/delegated_file.h"

#include <dirent.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

using namespace gpr;

namespace {

std::vector<std::byte> bytes(size_t count, int first = 0) {
    std::vector<std::byte> made(count);
    for (size_t i = 0; i < count; i++)
        made[i] = static_cast<std::byte>(first + static_cast<int>(i));
    return made;
}

DelegatedFile file(int64_t size, std::vector<std::byte> content) {
    struct stat status {};
    status.st_size = size;
    return {7, status, std::move(content)};
}

}  // namespace

TEST_CASE("reads end where the file ends") {
    DelegatedFile whole = file(10, bytes(10));
    REQUIRE(whole.content(0, 4));
    CHECK(whole.content(0, 4)->size() == 4);
    CHECK(whole.content(8, 100)->size() == 2);
    CHECK((*whole.content(8, 100))[0] == std::byte{8});
    CHECK(whole.content(10, 1)->empty());
    CHECK(whole.content(1'000'000, 1)->empty());
    CHECK(file(0, {}).content(0, 100)->empty());
}

TEST_CASE("what is not known is asked for, and never cut short") {
    DelegatedFile large = file(1 << 20, bytes(100));
    CHECK(large.content(0, 100));
    CHECK_FALSE(large.content(0, 101));
    CHECK_FALSE(large.content(99, 2));
    const auto part = large.missing(90, 20);  // goes on from what is known
    CHECK(part.at == 90);
    CHECK(part.bytes == 512 << 10);
    CHECK_FALSE(large.keep(part, bytes(5)));
    CHECK(large.keep(part, bytes(part.bytes)));
    CHECK(large.content(90, 20)->size() == 20);
    CHECK_FALSE(large.content(89, 1));
    CHECK(large.missing(900'000, 10).bytes == 128 << 10);  // somewhere else
    CHECK(large.missing((1 << 20) - 5, 10).bytes == 5);    // near the end
    CHECK(large.missing(0, (512 << 10) + 1).bytes == 0);   // home shall make such a call
}

TEST_CASE("lseek") {
    DelegatedFile some = file(100, {});
    CHECK(some.seek(0, SEEK_END) == 100);
    CHECK(some.seek(-30, SEEK_CUR) == 70);
    some.advance(5);
    CHECK(some.seek(0, SEEK_CUR) == 75);
    CHECK(some.seek(-76, SEEK_CUR) == -EINVAL);
    CHECK(some.offset() == 75);
    CHECK(some.seek(500, SEEK_SET) == 500);  // beyond the end
    CHECK_FALSE(some.seek(0, SEEK_DATA));
    CHECK_FALSE(some.seek(0, SEEK_HOLE));
    CHECK_FALSE(some.seek(0, 99));
    CHECK_FALSE(some.seek(INT64_MAX, SEEK_CUR));
    CHECK_FALSE(some.seek(INT64_MIN, SEEK_CUR));
    CHECK(some.offset() == 500);
}

TEST_CASE("lseek from the end of the largest file there can be is left to home") {
    DelegatedFile some = file(INT64_MAX, {});
    CHECK_FALSE(some.seek(1, SEEK_END));
    CHECK_FALSE(some.seek(0, SEEK_END));
    CHECK(some.offset() == 0);
}

namespace {

// name: of `letters` letters. offset: of the next entry.
void add_entry(std::vector<std::byte>& entries, size_t letters, uint64_t offset) {
    const size_t at = offsetof(dirent64, d_name);
    const auto size = static_cast<uint16_t>((at + letters + 8) / 8 * 8);
    std::vector<std::byte> one(size, std::byte{0});
    std::memcpy(one.data() + offsetof(dirent64, d_reclen), &size, sizeof size);
    std::memcpy(one.data() + offsetof(dirent64, d_off), &offset, sizeof offset);
    std::fill_n(one.begin() + static_cast<ptrdiff_t>(at), letters, std::byte{'a'});
    entries.insert(entries.end(), one.begin(), one.end());
}

DelegatedFile directory(std::vector<std::byte> entries) {
    struct stat status {};
    status.st_mode = S_IFDIR;
    status.st_size = 4096;
    return {7, status, std::move(entries)};
}

// Three of 24, 32 and 24 bytes.
DelegatedFile three() {
    std::vector<std::byte> entries;
    add_entry(entries, 1, 900);
    add_entry(entries, 9, 50);
    add_entry(entries, 2, 7000);
    return directory(std::move(entries));
}

}  // namespace

TEST_CASE("whole entries are listed, and the offset is the file system's") {
    DelegatedFile some = three();
    CHECK(some.is_directory());
    CHECK_FALSE(some.entries(23));  // none has room
    CHECK(some.entries(24)->size() == 24);
    CHECK(some.entries(55)->size() == 24);
    CHECK(some.entries(56)->size() == 56);
    CHECK(some.entries(1000)->size() == 80);
    CHECK(some.offset() == 0);
    some.advance(56);
    CHECK(some.offset() == 50);
    CHECK(some.entries(1000)->size() == 24);
    some.advance(24);
    CHECK(some.offset() == 7000);
    CHECK(some.entries(1000)->empty());
    CHECK(some.entries(1)->empty());
    CHECK(directory({}).entries(1)->empty());
}

TEST_CASE("a directory's offset is moved to where an entry ends") {
    DelegatedFile some = three();
    some.advance(80);
    CHECK(some.seek(0, SEEK_CUR) == 7000);
    CHECK(some.seek(900, SEEK_SET) == 900);
    CHECK(some.offset() == 900);
    CHECK(some.entries(1000)->size() == 56);
    CHECK_FALSE(some.seek(901, SEEK_SET));
    CHECK_FALSE(some.seek(-1, SEEK_SET));
    CHECK_FALSE(some.seek(1, SEEK_CUR));
    CHECK_FALSE(some.seek(0, SEEK_END));
    CHECK(some.offset() == 900);
    CHECK(some.seek(0, SEEK_SET) == 0);
    CHECK(some.entries(1000)->size() == 80);
}

TEST_CASE("entries that make no sense are not listed") {
    std::vector<std::byte> entries;
    add_entry(entries, 1, 1);
    for (const uint16_t size : {uint16_t{0}, uint16_t{8}, uint16_t{25}, uint16_t{9999}}) {
        std::memcpy(entries.data() + offsetof(dirent64, d_reclen), &size, sizeof size);
        DelegatedFile bad = directory(entries);
        CHECK_FALSE(bad.entries(1000));
        bad.advance(24);
        CHECK(bad.offset() == 0);
        CHECK_FALSE(bad.seek(1, SEEK_SET));
    }
}
