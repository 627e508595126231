// Turns one FrameBuilder into the pieces that go on the wire, without copying its content.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <vector>

#include "base/result.h"
#include "transport/frame.h"

namespace gpr {

class FrameEncoder {
public:
    // Fails for a frame that no peer would accept. The builder must outlive the encoder's use of
    // it.
    Result<> start(FrameBuilder& frame, Priority priority);

    // Makes the next piece; false if none is left. parts() is then valid until the next call, and
    // points into the builder and its raw bytes.
    bool next();
    [[nodiscard]] const std::vector<iovec>& parts() const { return parts_; }
    [[nodiscard]] size_t size() const { return size_; }

private:
    static constexpr size_t max_segments = 30;  // segments double in size, so 1 MiB has about ten

    void add_part(const void* data, size_t size);
    void add_message();
    void add_raw(size_t bytes);

    FrameBuilder* frame_ = nullptr;
    FrameHeader header_{};
    size_t next_offset_ = 0;
    bool first_ = true;
    size_t raw_part_ = 0;  // where the next piece's raw bytes begin
    size_t raw_part_offset_ = 0;
    std::array<uint32_t, max_segments + 2> table_{};
    std::vector<iovec> parts_;
    size_t size_ = 0;
};

}  // namespace gpr
