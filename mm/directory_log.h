// A record of what a PageDirectory was told and what it decided, in a fixed piece of memory, and
// the way back: a fresh directory that is told the same must decide the same.
//
// The memory (a mapped file, as a rule) is complete after each event, however its writer ends. It
// is a ring of segments. Each begins with all that the directory knew, so that it can be replayed
// when those before it are overwritten; where they are not, the state is checked, too. Every byte
// that counts is covered by a check.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "mm/page_directory.h"

namespace gpr {

class DirectoryLog {
public:
    static constexpr uint64_t least_bytes = 64 << 10;

    // memory: at least so much, all zeros. seed: of what is random in the session, or 0.
    DirectoryLog(std::span<std::byte> memory, uint64_t seed);

    // From now on. The directory must not be used after the log is gone.
    void record(PageDirectory& directory);
    // How many were begun, overwritten ones too.
    [[nodiscard]] uint32_t segments() const { return number_; }
    // What is behind so many bytes does not count.
    [[nodiscard]] uint64_t extent() const;

private:
    void add(const DirectoryEvent& event);
    void begin_segment();
    bool append(std::span<const std::byte> payload);
    [[nodiscard]] std::byte* segment();
    void set_word(uint64_t word);
    void commit();

    std::span<std::byte> memory_;
    uint64_t segment_bytes_;
    PageDirectory* directory_ = nullptr;
    uint32_t number_ = 0;  // of the segment, from 1
    uint64_t used_ = 0;    // bytes in it
    uint32_t check_ = 0;   // of all its records so far
    bool gap_ = false;     // events were left out since the segment began
    bool ended_ = false;   // what the directory knows is too much to be written down
    std::vector<std::byte> scratch_;
};

struct DirectoryReplay {
    uint64_t seed = 0;
    uint64_t segments = 0, events = 0, decisions = 0;
    std::string problem;  // empty: all that was recorded came out the same
    // Where decisions differ.
    directory_event::Decided recorded, replayed;
};

// directory: a fresh one; it ends as the recorded one did. seen: gets each event, before it is
// applied.
DirectoryReplay replay(std::span<const std::byte> memory, PageDirectory& directory,
                       const std::function<void(const DirectoryEvent&)>& seen = {});

}  // namespace gpr
