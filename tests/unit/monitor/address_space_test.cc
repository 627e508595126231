#include "mm/address_space.h"

#include <doctest/doctest.h>

namespace gpr {
namespace {

Mapping mapping(uint64_t first_page, uint64_t pages, ObjectId object, uint64_t object_page = 0) {
    Mapping m;
    m.range = {{first_page * page_size}, {(first_page + pages) * page_size}};
    m.object = object;
    m.object_page = object_page;
    return m;
}

Range pages(uint64_t from, uint64_t to) { return {{from * page_size}, {to * page_size}}; }

TEST_CASE("a hole in the middle leaves two views of one object") {
    AddressSpace space;
    space.map(mapping(10, 10, 1));
    auto gone = space.unmap(pages(13, 15));
    REQUIRE(gone.size() == 1);
    CHECK(gone[0].range == pages(13, 15));
    CHECK(gone[0].object_page == 3);
    CHECK(space.find({12 * page_size})->key({12 * page_size}) == PageKey{1, 2});
    CHECK(space.find({13 * page_size}) == nullptr);
    CHECK(space.find({15 * page_size})->key({15 * page_size}) == PageKey{1, 5});
    CHECK(space.address_of({1, 2}) == Address{12 * page_size});
    CHECK(space.address_of({1, 3}) == std::nullopt);
    CHECK(space.address_of({1, 6}) == Address{16 * page_size});
}

TEST_CASE("a mapping replaces what was there and says what that was") {
    AddressSpace space;
    space.map(mapping(10, 4, 1));
    space.map(mapping(14, 4, 2));
    auto gone = space.map(mapping(12, 4, 3));
    REQUIRE(gone.size() == 2);
    CHECK(gone[0].range == pages(12, 14));
    CHECK(gone[1].range == pages(14, 16));
    CHECK(space.find({12 * page_size})->object == 3);
    CHECK(space.find({16 * page_size})->key({16 * page_size}) == PageKey{2, 2});
}

TEST_CASE("moved views keep their pages, growth shows new ones, shrinking cuts") {
    AddressSpace space;
    space.map(mapping(10, 4, 1));
    CHECK(space.move(pages(10, 14), pages(40, 46)).empty());
    CHECK(space.find({10 * page_size}) == nullptr);
    CHECK(space.address_of({1, 5}) == Address{45 * page_size});
    auto cut = space.move(pages(40, 46), pages(40, 42));
    REQUIRE(cut.size() == 1);
    CHECK(cut[0].range == pages(42, 46));
    CHECK(cut[0].object_page == 2);
    CHECK(space.address_of({1, 1}) == Address{41 * page_size});
    CHECK(space.address_of({1, 2}) == std::nullopt);
}

TEST_CASE("gaps are found from the bottom of the window and again after an unmap") {
    AddressSpace space;
    Range window = pages(100, 200);
    space.map(mapping(100, 10, 1));
    CHECK(space.find_gap(window, 5 * page_size) == Address{110 * page_size});
    space.map(mapping(110, 85, 2));
    CHECK(space.find_gap(window, 5 * page_size) == Address{195 * page_size});
    CHECK(space.find_gap(window, 6 * page_size) == std::nullopt);
    space.unmap(pages(104, 108));
    CHECK(space.find_gap(window, 4 * page_size) == Address{104 * page_size});
    CHECK(space.is_free(pages(104, 108)));
    CHECK_FALSE(space.is_free(pages(104, 109)));
}

TEST_CASE("searches for gaps of several sizes agree with a search from the bottom") {
    AddressSpace space;
    Range window = pages(100, 400);
    auto lowest = [&](uint64_t size) -> std::optional<Address> {
        for (uint64_t page = 100; page + size <= 400; page++) {
            if (space.is_free(pages(page, page + size))) return Address{page * page_size};
        }
        return std::nullopt;
    };
    uint64_t random = 1;
    for (int step = 0; step < 4000; step++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint64_t size = 1 + (random >> 33) % 23, at = 100 + (random >> 40) % 280;
        if (random >> 63) {
            space.unmap(pages(at, at + size));
            continue;
        }
        auto gap = space.find_gap(window, size * page_size);
        REQUIRE(gap == lowest(size));
        if (gap) space.map(mapping(gap->value / page_size, size, 1));
    }
}

TEST_CASE("protection splits at the edges") {
    AddressSpace space;
    space.map(mapping(10, 10, 1));
    space.for_each(pages(12, 14), [](Mapping& m) { m.prot = 7; });
    CHECK(space.find({11 * page_size})->prot == 0);
    CHECK(space.find({12 * page_size})->prot == 7);
    CHECK(space.find({14 * page_size})->prot == 0);
    CHECK(space.all().size() == 3);
}

using Ranges = std::vector<Range>;

Mapping shared(uint64_t first_page, uint64_t pages, ObjectId object) {
    Mapping m = mapping(first_page, pages, object);
    m.shared = true;
    return m;
}

Ranges shared_views(const AddressSpace& space, ObjectId object) {
    Ranges found;
    space.shared_views(object, [&](const Mapping& m) { found.push_back(m.range); });
    return found;
}

Ranges overlapping(const AddressSpace& space, Range range) {
    Ranges found;
    space.overlapping(range, [&](const Mapping& m) { found.push_back(m.range); });
    return found;
}

Ranges views(const AddressSpace& space, ObjectId object, uint64_t first, uint64_t end) {
    Ranges found;
    space.views(object, first, end, [&](const Mapping& m) { found.push_back(m.range); });
    return found;
}

TEST_CASE("what overlaps a range is visited whole") {
    AddressSpace space;
    for (ObjectId i = 0; i < 8; i++) space.map(mapping(10 + 4 * i, 3, 1 + i));
    CHECK(overlapping(space, pages(10, 11)) == Ranges{pages(10, 13)});
    CHECK(overlapping(space, pages(12, 15)) == Ranges{pages(10, 13), pages(14, 17)});
    CHECK(overlapping(space, pages(13, 14)).empty());
    CHECK(overlapping(space, pages(0, 10)).empty());
    CHECK(overlapping(space, pages(0, 100)).size() == 8);
    CHECK(space.all().size() == 8);
}

TEST_CASE("every view of shared memory is found, whatever happened to it") {
    AddressSpace space;
    space.map(shared(10, 4, 7));
    space.map(shared(20, 4, 7));
    space.map(shared(30, 4, 8));
    CHECK(shared_views(space, 7) == Ranges{pages(10, 14), pages(20, 24)});
    space.unmap(pages(11, 13));
    CHECK(shared_views(space, 7) == Ranges{pages(10, 11), pages(13, 14), pages(20, 24)});
    space.move(pages(20, 24), pages(40, 44));
    CHECK(shared_views(space, 7) == Ranges{pages(10, 11), pages(13, 14), pages(40, 44)});
    space.map(mapping(40, 4, 9));
    CHECK(shared_views(space, 7) == Ranges{pages(10, 11), pages(13, 14)});
    CHECK(space.shows(7));
    space.unmap(pages(10, 20));
    CHECK(shared_views(space, 7).empty());
    CHECK_FALSE(space.shows(7));
    CHECK(space.shows(8));
    CHECK(space.shows(9));
}

TEST_CASE("an object is shown as long as a part of it is") {
    AddressSpace space;
    space.map(mapping(10, 4, 3));
    space.unmap(pages(10, 13));
    CHECK(space.shows(3));
    space.unmap(pages(13, 14));
    CHECK_FALSE(space.shows(3));
}

TEST_CASE("the views of some pages of an object are found in their order") {
    AddressSpace space;
    space.map(mapping(10, 10, 5));
    space.map(mapping(100, 4, 6));
    space.unmap(pages(13, 15));
    space.move(pages(10, 13), pages(50, 53));
    CHECK(views(space, 5, 0, 100) == Ranges{pages(50, 53), pages(15, 20)});
    CHECK(views(space, 5, 2, 5) == Ranges{pages(50, 53)});
    CHECK(views(space, 5, 3, 6) == Ranges{pages(15, 20)});
    CHECK(views(space, 5, 3, 5).empty());
    CHECK(views(space, 6, 3, 4) == Ranges{pages(100, 104)});
}

}  // namespace
}  // namespace gpr
