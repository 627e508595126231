// C++ library: iostreams, locales, filesystem, regex, chrono, coroutines, static destructors.
#include <algorithm>
#include <chrono>
#include <coroutine>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <numeric>
#include <random>
#include <regex>
#include <sstream>
#include <vector>

#include "guest.h"

namespace {
struct AtExit {
    ~AtExit() { std::cout << "static destroyed; passed" << std::endl; }
} at_exit;

struct Generator {
    struct promise_type {
        int value = 0;
        Generator get_return_object() {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_always initial_suspend() { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(int v) {
            value = v;
            return {};
        }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };
    std::coroutine_handle<promise_type> handle;
};

Generator squares(int count) {
    for (int i = 0; i < count; i++) co_yield i* i;
}
}  // namespace

int main() {
    std::ofstream("text") << "alpha beta\ngamma 3.5\n";
    std::ifstream in("text");
    std::string word;
    while (in >> word) std::cout << word << '|';
    std::filesystem::create_directories("a/b/c");
    std::filesystem::copy_file("text", "a/b/c/copy");
    std::vector<std::string> names;
    for (auto& entry : std::filesystem::recursive_directory_iterator("a"))
        names.push_back(entry.path());
    std::sort(names.begin(), names.end());
    for (auto& name : names) std::cout << name << ' ';
    std::cout << std::filesystem::remove_all("a") << '\n';
    std::mt19937_64 random(42);
    std::vector<double> values(1000);
    std::generate(values.begin(), values.end(),
                  [&] { return std::uniform_real_distribution<>()(random); });
    std::cout.precision(17);
    std::cout << std::accumulate(values.begin(), values.end(), 0.0) << '\n';
    std::smatch match;
    std::string text = "key=value; other=42";
    CHECK(std::regex_search(text, match, std::regex("other=(\\d+)")) && match[1] == "42");
    Generator generator = squares(10);
    int sum = 0;
    while (generator.handle.resume(), !generator.handle.done())
        sum += generator.handle.promise().value;
    generator.handle.destroy();
    CHECK_EQ(sum, 285);
    auto before = std::chrono::steady_clock::now();
    CHECK(std::chrono::steady_clock::now() >= before);
    return 0;
}
