#include "monitor/paging/lent_pages.h"

#include <doctest/doctest.h>

#include <vector>

namespace gpr::paging {
namespace {

std::shared_ptr<const std::byte> content(std::vector<int> values) {
    auto bytes = std::make_shared<std::vector<std::byte>>();
    for (int v : values) bytes->push_back(static_cast<std::byte>(v));
    return {bytes, bytes->data()};
}

std::vector<std::byte> bytes_of(std::vector<int> values) {
    auto from = content(values);
    return {from.get(), from.get() + values.size()};
}

// What home has after a page came back.
std::vector<std::byte> merged(std::vector<int> home, std::vector<int> back, const LentPages& lent) {
    std::vector<std::byte> now = bytes_of(std::move(home));
    bool done = write_changes(bytes_of(std::move(back)), lent, 5,
                              [&](size_t offset, std::span<const std::byte> part) {
                                  std::copy(part.begin(), part.end(), now.begin() + offset);
                                  return true;
                              });
    CHECK(done);
    return now;
}

}  // namespace

TEST_CASE("of a page that comes back only what the borrower wrote is taken") {
    LentPages lent;
    lent[5] = content({1, 2, 3, 4});
    CHECK(merged({1, 2, 3, 9}, {7, 2, 8, 4}, lent) == bytes_of({7, 2, 8, 9}));
    CHECK(merged({6, 6, 6, 6}, {1, 2, 3, 4}, lent) == bytes_of({6, 6, 6, 6}));
    CHECK(merged({6, 6, 6, 6}, {7, 7, 7, 7}, lent) == bytes_of({7, 7, 7, 7}));
}

TEST_CASE("a page that nobody remembers comes back whole") {
    LentPages lent;
    lent[4] = content({1, 2, 3, 4});
    CHECK(merged({1, 2, 3, 9}, {1, 2, 3, 4}, lent) == bytes_of({1, 2, 3, 4}));
}

TEST_CASE("who cannot write any more is not asked again") {
    LentPages lent;
    lent[5] = content({0, 0, 0});
    int asked = 0;
    bool done = write_changes(bytes_of({1, 0, 1}), lent, 5, [&](size_t, auto) {
        asked++;
        return false;
    });
    CHECK(!done);
    CHECK(asked == 1);
}

TEST_CASE("what is lent again while all is collected is remembered") {
    LentPages lent;
    lent[5] = content({1});
    lent[6] = content({1});
    const LentPages then = lent;
    lent[6] = content({1});  // has come back, and was lent once more
    lent[7] = content({1});
    forget_returned(lent, then);
    CHECK(lent.size() == 2);
    CHECK(!lent.contains(5));
    CHECK(lent.contains(6));
    CHECK(lent.contains(7));
}

}  // namespace gpr::paging
