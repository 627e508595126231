// What home has told a process about paths, and what it depends on. Pure: knows no process and no
// link.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "syscall/lookup_call.h"
#include "syscall/marshal.h"

namespace gpr {

class KnownLookups {
public:
    using Clock = std::chrono::steady_clock;

    struct Answer {
        int64_t result = 0;
        std::vector<std::byte> out;  // in the form of gather()
    };

    // Which calls have the same answer.
    enum class For : uint8_t {
        call,  // only the same
        file,  // also whether or not it follows a link at the end of the path: there is none
        path,  // all about the path: there is nothing
    };
    // call: that lookup_of() knows. ids: the answer holds until one of these is forgotten.
    void keep(const MarshalledCall& call, Answer answer, For which, std::span<const uint32_t> ids,
              Clock::time_point now);
    // nullptr: home has to answer.
    const Answer* find(const MarshalledCall& call, const LookupCall& lookup, Clock::time_point now);
    void forget(uint32_t id);
    void forget_all();

    // For an open that finds nothing: a process without a free descriptor is told so instead.
    // spare: what it can open, by home.
    void note_spare(uint32_t spare) { spare_ = spare; }
    // A call of the process that home makes may use up some.
    void note_call_at_home(uint32_t number);

    [[nodiscard]] size_t size() const { return answers_.size(); }

private:
    struct Known {
        Answer answer;
        Clock::time_point since;
        uint64_t number = 0;  // never used again
    };
    using Answers = std::unordered_map<std::string, Known>;
    const Known* at(const std::string& key, Clock::time_point now);
    void erase(Answers::iterator it);

    Answers answers_;
    std::unordered_map<uint64_t, const std::string*> by_number_;  // the key
    uint64_t last_number_ = 0;
    // What depends on an id, by number: some of these are gone already.
    std::unordered_map<uint32_t, std::vector<uint64_t>> dependents_;
    size_t dependences_ = 0;  // in all of these lists
    uint32_t spare_ = 0;
};

}  // namespace gpr
