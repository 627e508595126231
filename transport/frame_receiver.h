// Bytes in, validated frames out. Whatever a peer sends, the result is frames or one error.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "transport/frame.h"

namespace gpr {

class FrameReceiver {
public:
    explicit FrameReceiver(FrameLimits limits) : limits_(limits) {}

    void set_limits(FrameLimits limits) { limits_ = limits; }

    // Where to read the next bytes to; never empty. Then call received() with their number.
    std::span<std::byte> space();
    void received(size_t bytes) { end_ += bytes; }
    // Owner of what space() returned: keep it while a kernel may still write there.
    [[nodiscard]] std::shared_ptr<void> space_owner() const { return buffer_; }

    // The next whole frame, nothing yet, or why the peer cannot be understood (stop then).
    Result<std::optional<ReceivedFrame>> next();

    // Bytes of a frame that is still incomplete, or that have not been looked at.
    [[nodiscard]] size_t pending() const { return end_ - begin_; }

private:
    // Shared by the frames in it, and reused when the last of them is gone.
    struct Buffer {
        explicit Buffer(size_t bytes);
        std::unique_ptr<uint64_t[]> words;
        size_t size;
        [[nodiscard]] std::byte* data() const { return reinterpret_cast<std::byte*>(words.get()); }
    };
    // A long frame whose pieces are still arriving.
    struct Assembly {
        std::shared_ptr<Buffer> buffer;
        FrameHeader header;
        size_t filled;
    };

    std::shared_ptr<Buffer> fresh_buffer(size_t bytes);
    Result<> check(const FrameHeader& header) const;
    Result<std::optional<ReceivedFrame>> take(const FrameHeader& header);
    void begin_assembly(const FrameHeader& header, const std::byte* message);
    static Result<std::optional<ReceivedFrame>> finish(std::shared_ptr<Buffer> buffer,
                                                       const FrameHeader& header,
                                                       const std::byte* message,
                                                       const std::byte* raw);

    FrameLimits limits_;
    std::shared_ptr<Buffer> buffer_;
    std::vector<std::shared_ptr<Buffer>> spare_;
    size_t begin_ = 0;
    size_t end_ = 0;
    size_t needed_ = 0;  // size of the frame at begin_, if known
    std::optional<Assembly> assembly_;
};

}  // namespace gpr
