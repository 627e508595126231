// Frames: the unit that is sent on a link. Pure code, which knows no descriptor.
//
// A frame on the wire, little endian, every part padded to 8 bytes so that messages stay aligned:
//
//   header   32 bytes, FrameHeader
//   message  message_words * 8 bytes: one gpr.capnp Frame in Cap'n Proto's stream format
//   raw      raw_bytes of page content, then zero padding to the next multiple of 8
//
// A long bulk frame is cut into pieces, so that urgent frames can pass between them. The first
// piece has the message, the others only raw bytes, in order; pieces of two bulk frames are never
// mixed.
#pragma once

#include <capnp/message.h>
#include <capnp/serialize.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "transport/wire.h"

namespace gpr {

enum class Priority : uint8_t { urgent = 0, bulk = 1 };

struct FrameHeader {
    uint32_t magic;          // frame_magic in every version of gpr
    uint32_t message_words;  // 0 in all but the first piece
    uint32_t raw_bytes;      // of this piece
    uint32_t raw_total;      // of the whole frame
    uint32_t raw_offset;     // of this piece in the frame
    uint8_t priority;
    uint8_t reserved[11];  // zero
};
static_assert(sizeof(FrameHeader) == 32);

inline constexpr uint32_t frame_magic = 0x31527067;  // "gpR1"
inline constexpr uint32_t max_message_bytes = 1u << 20;
inline constexpr uint32_t max_raw_bytes = 16u << 20;
// An urgent frame waits at most behind one piece of a bulk frame and what the kernel holds unsent.
inline constexpr uint32_t bulk_piece_bytes = 128u << 10;

// What one side accepts; much less before a peer has proven its token.
struct FrameLimits {
    uint32_t message_bytes = max_message_bytes;
    uint32_t raw_bytes = max_raw_bytes;
};
inline constexpr FrameLimits handshake_limits{64u << 10, 0};
// For an acceptor that has proven its token: its welcome may contain an inventory.
inline constexpr FrameLimits welcome_limits{256u << 10, 0};

// One frame to send. On a hot path reuse one, or make one on the stack: small messages need no
// heap.
class FrameBuilder {
public:
    FrameBuilder();
    ~FrameBuilder();
    FrameBuilder(const FrameBuilder&) = delete;
    FrameBuilder& operator=(const FrameBuilder&) = delete;

    // The message to fill in. After restart() it is a new, empty one.
    wire::Frame::Builder message();
    // Short for message().initSession().
    wire::SessionMessage::Builder session() { return message().initSession(); }
    // Drops the message and the raw bytes; builders handed out before become invalid.
    void restart();

    // Appends page content. It is not copied, so it must stay unchanged until send() has returned.
    void add_raw(std::span<const std::byte> bytes);

    [[nodiscard]] size_t raw_size() const { return raw_size_; }
    [[nodiscard]] const std::vector<std::span<const std::byte>>& raw_parts() const { return raw_; }
    kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>> segments();

private:
    static constexpr size_t scratch_words = 128;

    std::array<capnp::word, scratch_words> scratch_;
    std::optional<capnp::MallocMessageBuilder> builder_;
    bool started_ = false;
    std::vector<std::span<const std::byte>> raw_;
    size_t raw_size_ = 0;
};

// One received frame, already validated: no accessor of message() can throw. It keeps the receive
// buffer it lies in (512 KiB) alive, so do not keep it long.
class ReceivedFrame {
public:
    ReceivedFrame(std::shared_ptr<void> buffer, const FrameHeader& header,
                  std::span<const capnp::word> message, std::span<const std::byte> raw);

    [[nodiscard]] wire::Frame::Reader message() const { return root_; }
    [[nodiscard]] wire::SessionMessage::Reader session() const { return root_.getSession(); }
    [[nodiscard]] std::span<const std::byte> raw() const { return raw_; }
    [[nodiscard]] Priority priority() const { return priority_; }

private:
    friend class FrameReceiver;

    std::shared_ptr<void> buffer_;
    // A pointer, so that readers stay valid when the frame is moved.
    std::unique_ptr<capnp::FlatArrayMessageReader> reader_;
    wire::Frame::Reader root_;
    std::span<const std::byte> raw_;
    Priority priority_;
};

}  // namespace gpr
