// C++ exceptions out of the library, through it and into it; virtual calls; strings and vectors.
#include "guest.h"
#include "libgprguestpp.h"

namespace {
struct Circle : remote::Shape {
    explicit Circle(double length) : radius(length) {}
    double area() const override { return 3 * radius * radius; }
    double radius;
};

int descend(int depth) {
    if (depth == 0) throw remote::Error(99);
    return remote::pass_through(descend, depth - 1);
}
}  // namespace

int main() {
    for (int i = 1; i <= 100; i++) {
        try {
            remote::throw_error(i);
            CHECK(!"not reached");
        } catch (const remote::Error& error) {
            CHECK_EQ(error.code, i);
            CHECK_EQ(strcmp(error.what(), "remote error"), 0);
        }
        CHECK_EQ(remote::catch_from([i] { throw remote::Error(i * 2); }), i * 2);
        int before = remote::Guard::destroyed;
        try {
            remote::pass_through(descend, 10);
            CHECK(!"not reached");
        } catch (const std::exception&) {
        }
        CHECK_EQ(remote::Guard::destroyed - before, 11);
    }
    remote::Square square(2);
    Circle circle(1);
    CHECK_EQ(remote::total_area({&square, &circle, &square}), 11);
    CHECK(remote::join({"one", "two", std::string(5000, 'x')}).size() == 5009);
    return guest_passed();
}
