// The C++ side of the remote library: exceptions, virtual calls and containers across the boundary.
#ifndef GPR_TESTS_GUESTS_LIBGPRGUESTPP_H
#define GPR_TESTS_GUESTS_LIBGPRGUESTPP_H

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace remote {

struct Error : std::runtime_error {
    explicit Error(int value) : std::runtime_error("remote error"), code(value) {}
    int code;
};

struct Shape {
    virtual ~Shape();
    virtual double area() const = 0;
};

struct Square : Shape {
    explicit Square(double length) : side(length) {}
    double area() const override;
    double side;
};

struct Guard {
    Guard() = default;
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    ~Guard();
    static int destroyed;
};

void throw_error(int code);
int catch_from(const std::function<void()>& callback);
int pass_through(const std::function<int(int)>& callback, int depth);
double total_area(const std::vector<const Shape*>& shapes);
std::string join(const std::vector<std::string>& words);

}  // namespace remote
#endif
