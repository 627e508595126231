#include "transport/greeting.h"

#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <poll.h>

#include <algorithm>

#include "transport/greeting_messages.h"

namespace gpr {

namespace {
constexpr std::chrono::milliseconds linger_time{1000};
constexpr size_t max_linger_bytes = 256u << 10;

Result<> flush_stream(ByteStream& stream, Deadline deadline) {
    for (;;) {
        GPR_CHECK(stream.flush());
        if (stream.unsent() == 0) return {};
        GPR_CHECK(wait_for_socket(stream.fd(), POLLOUT, deadline));
    }
}
}  // namespace

Result<> Greeting::send(FrameBuilder& frame) {
    GPR_TRY(auto bytes, frame_bytes(frame));
    for (size_t sent = 0; sent < bytes.size();) {
        iovec rest{bytes.data() + sent, bytes.size() - sent};
        GPR_TRY(size_t written, stream_->write({&rest, 1}));
        sent += written;
        if (written == 0) GPR_CHECK(wait_for_socket(stream_->fd(), POLLOUT, deadline_));
    }
    return flush_stream(*stream_, deadline_);
}

Result<ReceivedFrame> Greeting::receive() {
    for (;;) {
        GPR_TRY(auto frame, receiver_->next());
        if (frame) return std::move(*frame);
        auto space = receiver_->space();
        GPR_TRY(auto transfer, stream_->read(space));
        if (transfer.ended) return fail("it closed the connection");
        receiver_->received(transfer.bytes);
        if (transfer.bytes == 0) GPR_CHECK(wait_for_socket(stream_->fd(), POLLIN, deadline_));
        // A peer that sends byte by byte must not hold us longer than a silent one.
        if (std::chrono::steady_clock::now() >= deadline_) return fail(ETIMEDOUT, "no answer");
    }
}

void Greeting::refuse(const std::string& reason) {
    FrameBuilder frame;
    auto refuse = frame.message().initRefuse();
    refuse.setProtocolVersion(protocol_version);
    refuse.setReason(reason);
    if (send(frame)) linger(*stream_, deadline_);
}

std::unique_ptr<FrameReceiver> Greeting::take_receiver() {
    receiver_->set_limits(FrameLimits{});
    return std::move(receiver_);
}

void linger(ByteStream& stream, Deadline deadline) {
    stream.finish_writing();
    deadline = std::min(deadline, std::chrono::steady_clock::now() + linger_time);
    std::vector<std::byte> discarded(16u << 10);
    for (size_t total = 0; total < max_linger_bytes;) {
        auto got = stream.read(discarded);
        if (!got || got->ended) return;
        total += got->bytes;
        if (got->bytes == 0 && !wait_for_socket(stream.fd(), POLLIN, deadline)) return;
        if (std::chrono::steady_clock::now() >= deadline) return;
    }
}

std::array<uint8_t, 32> token_proof(const Token& token, Prover prover, const Nonce& initiator,
                                    const Nonce& acceptor) {
    std::string text = prover == Prover::initiator ? "gpr initiator" : "gpr acceptor ";
    text.append(initiator.begin(), initiator.end());
    text.append(acceptor.begin(), acceptor.end());
    std::array<uint8_t, 32> proof{};
    unsigned size = 0;
    ::HMAC(EVP_sha256(), token.secret.data(), static_cast<int>(token.secret.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), proof.data(), &size);
    GPR_ASSERT(size == proof.size());
    return proof;
}

Result<Nonce> new_nonce() {
    Nonce nonce{};
    if (RAND_bytes(nonce.data(), static_cast<int>(nonce.size())) != 1) {
        return fail("the system gives no random numbers");
    }
    return nonce;
}

bool same_proof(capnp::Data::Reader given, const std::array<uint8_t, 32>& expected) {
    return given.size() == expected.size() &&
           CRYPTO_memcmp(given.begin(), expected.data(), expected.size()) == 0;
}

}  // namespace gpr
