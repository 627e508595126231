// C++: exceptions through many frames, rethrow, exception_ptr between threads, RAII, static locals.
#include <exception>
#include <future>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "guest.h"

namespace {
int destroyed = 0;
thread_local std::string local = "thread";
struct Counted {
    ~Counted() { destroyed++; }
};

int fall(int depth) {
    Counted counted;
    if (depth == 0) throw std::runtime_error("bottom");
    return fall(depth - 1) + 1;
}

const std::string& once_only() {
    static const std::string text = [] {
        printf("static local made once\n");
        return std::string("static");
    }();
    return text;
}
}  // namespace

int main() {
    for (int i = 0; i < 1000; i++) {
        try {
            fall(i % 40);
            CHECK(!"not reached");
        } catch (const std::exception& error) {
            CHECK(std::string(error.what()) == "bottom");
        }
    }
    CHECK_EQ(destroyed, 1000 / 40 * (40 * 41 / 2));
    std::vector<std::future<int>> futures;
    for (int i = 0; i < 8; i++)
        futures.push_back(std::async(std::launch::async, [i] {
            once_only();
            if (i % 2) throw std::out_of_range("odd " + std::to_string(i));
            return i;
        }));
    for (int i = 0; i < 8; i++) {
        try {
            CHECK_EQ(futures[static_cast<size_t>(i)].get(), i);
        } catch (const std::out_of_range& error) {
            printf("%s\n", error.what());
        }
    }
    std::map<std::string, std::unique_ptr<int>> map;
    for (int i = 0; i < 5000; i++) map[std::to_string(i * 7919 % 5000)] = std::make_unique<int>(i);
    CHECK_EQ(map.size(), 5000);
    std::thread([] {
        local += " other";
        CHECK(local == "thread other");
    }).join();
    CHECK(local == "thread");
    return guest_passed();
}
