// Handshake messages on an established stream: one frame at a time, with a deadline.
#pragma once

#include <memory>
#include <string>

#include "transport/byte_stream.h"
#include "transport/frame_receiver.h"
#include "transport/handshake.h"

namespace gpr {

// How often the acceptor asks for home's clocks, until an answer does not come much faster than
// those before; the one that came fastest counts.
inline constexpr int clock_questions = 8, least_clock_questions = 3;

class Greeting {
public:
    Greeting(std::unique_ptr<ByteStream> stream, Deadline deadline)
        : stream_(std::move(stream)),
          receiver_(std::make_unique<FrameReceiver>(handshake_limits)),
          deadline_(deadline) {}

    Result<> send(FrameBuilder& frame);
    // The peer has proven its token, so its next frame may be longer.
    void trust_peer() { receiver_->set_limits(welcome_limits); }
    // Returns the next frame. The end of the stream, garbage and the deadline are errors.
    Result<ReceivedFrame> receive();

    // Sends the last message, and waits (shortly) until the peer has read it, because a reset could
    // overtake it.
    void refuse(const std::string& reason);

    // The proven stream, for the link.
    std::unique_ptr<ByteStream> take_stream() { return std::move(stream_); }
    std::unique_ptr<FrameReceiver> take_receiver();

private:
    std::unique_ptr<ByteStream> stream_;
    std::unique_ptr<FrameReceiver> receiver_;
    Deadline deadline_;
};

// Closes our half and waits shortly until the peer has closed its own.
void linger(ByteStream& stream, Deadline deadline);

// The answer to a challenge: HMAC-SHA256, with the token's secret as key, over the prover's side
// and both nonces, so that a proof can neither be replayed nor reflected.
using Nonce = std::array<uint8_t, 32>;
enum class Prover { initiator, acceptor };
std::array<uint8_t, 32> token_proof(const Token& token, Prover prover, const Nonce& initiator,
                                    const Nonce& acceptor);
Result<Nonce> new_nonce();
bool same_proof(capnp::Data::Reader given, const std::array<uint8_t, 32>& expected);

}  // namespace gpr
