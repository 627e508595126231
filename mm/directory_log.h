// A log of what a PageDirectory was told and what it decided, in a fixed piece of memory, and its
// replay: a new directory that is told the same must decide the same.
//
// The memory (usually a mapped file) is consistent after each event, however its writer ends. It is
// a ring of segments. Each segment begins with the directory's whole state, so that it can be
// replayed when the earlier ones have been overwritten. If they have not, the replay verifies that
// state. Checksums cover every byte that matters.
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

    // memory: at least the minimal size, all zeros. seed: of the session's random decisions, or 0.
    DirectoryLog(std::span<std::byte> memory, uint64_t seed);

    // Starts recording. The directory must not be used after the log is destroyed.
    void record(PageDirectory& directory);
    // The number of segments begun, including overwritten ones.
    [[nodiscard]] uint32_t segments() const { return number_; }
    // The number of bytes in use; the rest can be ignored.
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
    uint32_t number_ = 0;  // of the current segment, from 1
    uint64_t used_ = 0;    // bytes in it
    uint32_t check_ = 0;   // of all its records so far
    bool gap_ = false;     // events have been left out since the segment began
    bool ended_ = false;   // the directory's state is too large to be recorded
    std::vector<std::byte> scratch_;
};

struct DirectoryReplay {
    uint64_t seed = 0;
    uint64_t segments = 0, events = 0, decisions = 0;
    std::string problem;  // empty: the replay decided the same everywhere
    // The decisions that differ.
    directory_event::Decided recorded, replayed;
};

// directory: a new one; it ends in the recorded one's state. seen: called with each event, before
// that is applied.
DirectoryReplay replay(std::span<const std::byte> memory, PageDirectory& directory,
                       const std::function<void(const DirectoryEvent&)>& seen = {});

}  // namespace gpr
