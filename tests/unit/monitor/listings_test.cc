#include "monitor/home/listings.h"

#include <dirent.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

using namespace gpr::home;

namespace {

const Listings::Place here{1, 2, 3}, elsewhere{1, 3, 3};

void add(std::vector<std::byte>& entries, const std::string& name, uint8_t type) {
    const size_t at = offsetof(dirent64, d_name);
    const auto size = static_cast<uint16_t>((at + name.size() + 8) / 8 * 8);
    std::vector<std::byte> one(size);
    std::memcpy(one.data() + offsetof(dirent64, d_reclen), &size, sizeof size);
    std::memcpy(one.data() + offsetof(dirent64, d_type), &type, sizeof type);
    std::memcpy(one.data() + at, name.c_str(), name.size() + 1);
    entries.insert(entries.end(), one.begin(), one.end());
}

std::string name_of(int i) { return "file" + std::to_string(1000 + i); }

std::vector<std::byte> files(int first, int end) {
    std::vector<std::byte> entries;
    for (int i = first; i < end; i++) add(entries, name_of(i), DT_REG);
    return entries;
}

}  // namespace

TEST_CASE("all files of a directory are told once") {
    Listings listings;
    listings.note(here, files(0, 100));
    listings.note(here, files(100, 150));
    CHECK(listings.next(here, 1, name_of(70)).empty());
    CHECK(listings.next(here, 1, name_of(70)).empty());
    std::vector<std::string> all;
    for (int turn = 0; turn < 4; turn++) {
        const auto some = listings.next(here, 1, name_of(90 + turn));
        CHECK(some.size() > 10);  // more each time
        CHECK(some.size() <= (16U << std::min(turn, 2)));
        if (turn == 0) CHECK(some.front() == name_of(91));
        all.insert(all.end(), some.begin(), some.end());
    }
    CHECK(listings.next(here, 1, name_of(3)).empty());
    std::ranges::sort(all);
    CHECK(std::ranges::adjacent_find(all) == all.end());
    CHECK(all.size() >= 146);  // but for those that were asked for
}

TEST_CASE("each reader is told by itself, of each directory") {
    Listings listings;
    listings.note(here, files(0, 10));
    listings.next(here, 1, "a");
    CHECK(listings.next(here, 2, "b").empty());
    CHECK(listings.next(elsewhere, 1, "b").empty());
    CHECK(listings.next(elsewhere, 1, "c").empty());  // which nobody has listed
    CHECK(listings.next(here, 1, "b").size() == 10);
    CHECK(listings.next(here, 2, "c").size() == 10);
    listings.forget(1);
    CHECK(listings.next(here, 2, "d").empty());
    CHECK(listings.next(here, 1, "d").empty());
    CHECK(listings.next(here, 1, "e").size() == 10);
    listings.forget_all();
    listings.next(here, 1, "a");
    CHECK(listings.next(here, 1, "b").empty());
}

TEST_CASE("only regular files count, and entries that are whole") {
    Listings listings;
    std::vector<std::byte> entries;
    add(entries, "directory", DT_DIR);
    add(entries, "link", DT_LNK);
    add(entries, "unknown", DT_UNKNOWN);
    add(entries, "file", DT_REG);
    add(entries, "no/name", DT_REG);  // memory of the program's may say anything
    add(entries, std::string(256, 'n'), DT_REG);
    add(entries, "cut", DT_REG);
    entries.resize(entries.size() - 1);
    listings.note(here, entries);
    listings.next(here, 1, "a");
    CHECK(listings.next(here, 1, "b") == std::vector<std::string>{"file"});
}

TEST_CASE("directories that are too large are left alone") {
    Listings listings;
    for (int i = 0; i < 5; i++) listings.note(here, files(i * 1000, (i + 1) * 1000));
    listings.next(here, 1, "a");
    CHECK(listings.next(here, 1, "b").empty());
}
