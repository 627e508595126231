#include "monitor/rules/function_symbols.h"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "base/fd.h"

namespace gpr {
namespace {

SplitRule functions(std::string symbols) {
    SplitRule rule{SplitKind::fn, "libchoosable.so", "1"};
    rule.symbols = std::move(symbols);
    return rule;
}

struct Library {
    Fd fd{open(GPR_CHOOSABLE, O_RDONLY | O_CLOEXEC)};
    void* loaded = dlopen(GPR_CHOOSABLE, RTLD_LAZY);

    Library() { REQUIRE(loaded); }
    ~Library() { dlclose(loaded); }

    [[nodiscard]] FoundFunctions find(const std::vector<SplitRule>& rules) const {
        return find_functions(fd.get(), "libchoosable.so", rules).value();
    }

    [[nodiscard]] std::vector<std::byte> bytes(uint64_t begin, uint64_t end) const {
        std::vector<std::byte> out(end - begin);
        REQUIRE(pread(fd.get(), out.data(), out.size(), static_cast<off_t>(begin)) ==
                static_cast<ssize_t>(out.size()));
        return out;
    }
};

TEST_CASE("functions are found where they are in the file") {
    const Library library;
    const FoundFunctions found = library.find({functions("choose_*")});
    REQUIRE(found.functions);
    CHECK(found.functions->library == "libchoosable.so");
    std::map<std::string, ChosenFunction> by_name;
    for (const ChosenFunction& f : found.functions->list) by_name[f.name] = f;
    std::vector<std::string> names;
    for (const auto& [name, f] : by_name) names.push_back(name);
    CHECK(names == std::vector<std::string>{"choose_alias", "choose_first", "choose_outside",
                                            "choose_resolved", "choose_sizeless"});
    for (const auto& [name, f] : by_name) {
        CAPTURE(name);
        CHECK(f.resolver == (name == "choose_resolved"));
        if (f.resolver) continue;
        const auto bytes = library.bytes(f.begin, f.end);
        const void* code = dlsym(library.loaded, name.c_str());
        REQUIRE(code);
        CHECK(std::memcmp(code, bytes.data(), bytes.size()) == 0);
        CHECK(found.functions->find(f.begin)->name == name);
        CHECK(found.functions->find(f.end - 1)->name == name);
        const ChosenFunction* behind = found.functions->find(f.end);
        CHECK((behind == nullptr || behind->name != name));
    }
    CHECK(by_name["choose_sizeless"].end - by_name["choose_sizeless"].begin == 2);
    CHECK(by_name["choose_outside"].end - by_name["choose_outside"].begin == 3);
}

TEST_CASE("rules that choose nothing are not told") {
    const Library library;
    const SplitRule one = functions("choose_first"), none = functions("choose_elsewhere");
    const FoundFunctions found = library.find({none, one, functions("choose_data")});
    CHECK(found.rules == std::vector{one});
    REQUIRE(found.functions);
    CHECK(found.functions->list.size() == 1);
    CHECK(library.find({none}).functions == nullptr);
    CHECK(library.find({none}).rules.empty());
}

TEST_CASE("the end of a function without a symbol") {
    const Library library;
    auto leave_found = reinterpret_cast<int (*(*)())(int)>(dlsym(library.loaded, "leave_found"));
    const bool has_it = leave_found != nullptr;
    REQUIRE(has_it);
    auto code = reinterpret_cast<const std::byte*>(leave_found());
    const FoundFunctions found = library.find({functions("choose_first")});
    const uint64_t first = found.functions->list.at(0).begin;
    auto first_code = static_cast<const std::byte*>(dlsym(library.loaded, "choose_first"));
    // One segment holds both.
    const uint64_t offset = first + static_cast<uint64_t>(code - first_code);
    const auto rest = rest_of_function(library.fd.get(), offset);
    REQUIRE(rest);
    CHECK(*rest > 1);
    CHECK(*rest < 64);
    CHECK(rest_of_function(library.fd.get(), offset + 1) == *rest - 1);
    CHECK_FALSE(rest_of_function(library.fd.get(), 0));
}

TEST_CASE("what is no library is said to be none") {
    const Fd text(open(__FILE__, O_RDONLY | O_CLOEXEC));
    if (!text) return;
    const auto found = find_functions(text.get(), "text", {functions("*")});
    REQUIRE_FALSE(found);
    CHECK(found.error().code == ENOEXEC);
}

TEST_CASE("functions are added beside others") {
    ChosenFunctions functions;
    functions.add({10, 20, "a", false});
    functions.add({30, 40, "b", false});
    functions.add({15, 35, "c", false});
    functions.add({12, 18, "d", false});
    functions.add({50, 60, "e", false});
    functions.add({5, 12, "f", false});
    const std::vector<ChosenFunction> wanted{{5, 10, "f", false},
                                             {10, 20, "a", false},
                                             {20, 30, "c", false},
                                             {30, 40, "b", false},
                                             {50, 60, "e", false}};
    CHECK(functions.list == wanted);
    CHECK(functions.find(4) == nullptr);
    CHECK(functions.find(29)->name == "c");
    CHECK(functions.find(45) == nullptr);
}

}  // namespace
}  // namespace gpr
