#include "monitor/home/lookup_sequences.h"

#include <doctest/doctest.h>

using namespace gpr::home;

namespace {

using Place = LookupSequences::Place;
using Places = std::vector<Place>;

void ask(LookupSequences& sequences, std::initializer_list<Place> places, uint32_t reader = 1) {
    for (const Place& place : places) sequences.note(reader, place);
}

}  // namespace

TEST_CASE("names that were asked for one after another are, in another directory") {
    LookupSequences sequences;
    ask(sequences, {{"a/", "x.so"}, {"a/", "x"}, {"a/", "x.py"}, {"b/", "x.so"}});
    CHECK(sequences.after({"b/", "x.so"}, true).empty());  // once is not enough
    ask(sequences, {{"b/", "x"}, {"b/", "x.py"}, {"c/", "x.so"}});
    const Places next{{"c/", "x"}, {"c/", "x.py"}};
    CHECK(sequences.after({"c/", "x.so"}, true) == next);
    CHECK(sequences.after({"c/", "x.so"}, false) == next);
    CHECK(sequences.after({"c/", "x.py"}, true).empty());
    CHECK(sequences.after({"c/", "y"}, true).empty());
}

TEST_CASE("a search for one name in several directories is one for the next") {
    LookupSequences sequences;
    for (const char* name : {"1", "2"}) {
        ask(sequences, {{"a/", name}, {"b/", name}, {"", name}, {"/d/", name}});
    }
    const Places next{{"b/", "3"}, {"", "3"}, {"/d/", "3"}};
    CHECK(sequences.after({"a/", "3"}, true) == next);
    CHECK(sequences.after({"a/", "3"}, false).empty());  // it is found
    CHECK(sequences.after({"/d/", "3"}, true).empty());
}

TEST_CASE("what was told is not asked for, and teaches nothing wrong") {
    LookupSequences sequences;
    for (const char* name : {"1", "2"}) ask(sequences, {{"a/", name}, {"b/", name}});
    for (const char* name : {"3", "4"}) {
        ask(sequences, {{"a/", name}});
        sequences.note_told(1, {"b/", name});
        ask(sequences, {{"c/", name}});
    }
    CHECK(sequences.after({"a/", "5"}, true) == Places{{"b/", "5"}, {"c/", "5"}});
}

TEST_CASE("readers have sequences of their own, and all learn from them") {
    LookupSequences sequences;
    ask(sequences, {{"a/", "x"}}, 1);
    ask(sequences, {{"a/", "z"}}, 2);
    ask(sequences, {{"a/", "y"}}, 1);
    ask(sequences, {{"b/", "x"}}, 3);
    sequences.forget(2);
    ask(sequences, {{"a/", "y"}}, 2);
    CHECK(sequences.after({"c/", "x"}, true).empty());
    ask(sequences, {{"b/", "y"}}, 3);
    CHECK(sequences.after({"c/", "x"}, true) == Places{{"c/", "y"}});
    CHECK(sequences.after({"c/", "z"}, true).empty());
}

TEST_CASE("a sequence that has changed is learned anew, and none goes round for ever") {
    LookupSequences sequences;
    for (const char* directory : {"a/", "b/", "c/"}) {
        ask(sequences, {{directory, "x"}, {directory, "y"}, {directory, "x"}});
    }
    CHECK(sequences.after({"d/", "x"}, true) == Places{{"d/", "y"}});
    for (int i = 0; i < 8; i++) {
        ask(sequences, {{std::to_string(i), "x"}, {std::to_string(i), "z"}});
    }
    CHECK(sequences.after({"d/", "x"}, true) == Places{{"d/", "z"}});
    for (int i = 0; i < 20000; i++) ask(sequences, {{"e/", std::to_string(i)}}, 7);
    CHECK(sequences.after({"d/", "x"}, true).size() <= 1);
}
