// `gpr exec --record=FILE`: records what the directory is told and decides, in a file that is
// complete even if the monitor is killed. `tests/sim/sim --replay FILE` reads it.
#pragma once

#include <memory>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "mm/directory_log.h"

namespace gpr {

class DirectoryRecord {
public:
    // seed: of the session's random decisions, or 0.
    static Result<std::unique_ptr<DirectoryRecord>> create(const std::string& path, uint64_t seed);
    ~DirectoryRecord();
    DirectoryRecord(const DirectoryRecord&) = delete;
    DirectoryRecord& operator=(const DirectoryRecord&) = delete;

    // The directory must not be used after this object is destroyed.
    void record(PageDirectory& directory) { log_.record(directory); }

private:
    DirectoryRecord(Fd file, std::span<std::byte> memory, uint64_t seed)
        : file_(std::move(file)), memory_(memory), log_(memory, seed) {}

    Fd file_;
    std::span<std::byte> memory_;
    DirectoryLog log_;
};

}  // namespace gpr
