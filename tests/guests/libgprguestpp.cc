#include "libgprguestpp.h"

namespace remote {

Shape::~Shape() = default;

void throw_error(int code) { throw Error(code); }

int catch_from(const std::function<void()>& callback) {
    try {
        callback();
    } catch (const Error& error) {
        return error.code;
    }
    return 0;
}

int pass_through(const std::function<int(int)>& callback, int depth) {
    Guard guard;
    return callback(depth);
}

int Guard::destroyed = 0;
Guard::~Guard() { destroyed++; }

double Square::area() const { return side * side; }
double total_area(const std::vector<const Shape*>& shapes) {
    double total = 0;
    for (const Shape* shape : shapes) total += shape->area();
    return total;
}

std::string join(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += word + ",";
    return text;
}

}  // namespace remote
