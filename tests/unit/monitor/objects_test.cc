// What a node knows of memory objects: nothing of those that are erased, whatever still comes for
// them.
#include <doctest/doctest.h>

#include "monitor/paging/pager.h"

namespace gpr {
namespace {

constexpr ObjectId object = 7, other = 8;

struct Home {
    std::unique_ptr<Loop> loop = std::move(*Loop::create());
    PageDirectory directory;
    Pager pager{directory_node, *loop, &directory, [](NodeId, bool, const Message&) {}};
};

TEST_CASE("an object is born where it has been added") {
    Home home;
    home.pager.objects.add(object, directory_node);
    home.pager.objects.add(other, 1);
    CHECK(home.pager.objects.is_born_here(object));
    CHECK_FALSE(home.pager.objects.is_born_here(other));
    home.pager.objects.copy(object, 9);
    home.pager.objects.copy(other, 10);
    CHECK(home.pager.objects.is_born_here(9));
    CHECK_FALSE(home.pager.objects.is_born_here(10));
}

TEST_CASE("one that is erased, or was never added, is born nowhere") {
    Home home;
    home.pager.objects.add(object, directory_node);
    home.pager.objects.erase(object);
    CHECK_FALSE(home.pager.objects.is_born_here(object));
    CHECK_FALSE(home.pager.objects.is_born_here(other));
    home.pager.objects.copy(object, other);
    CHECK_FALSE(home.pager.objects.is_born_here(other));
}

}  // namespace
}  // namespace gpr
