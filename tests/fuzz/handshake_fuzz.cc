// Strangers at the door: whatever they send, accept_session returns an error in time (or, rarely,
// a session: some bytes do not matter), loses no descriptor, and serves the next one.
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <iterator>
#include <map>
#include <memory>

#include "fuzz.h"
#include "transport/byte_stream.h"
#include "transport/frame_encoder.h"
#include "transport/frame_receiver.h"
#include "transport/greeting.h"
#include "transport/handshake.h"
#include "transport/tls_stream.h"

namespace gpr::fuzz {

namespace {

using std::chrono::steady_clock;

std::map<std::string, uint64_t> outcomes;
uint64_t sessions = 0;
uint64_t inputs = 0;
ptrdiff_t descriptors_before = 0;

Token token() {
    Token t;
    t.id = "tester";
    t.secret.fill(5);
    return t;
}
const TokenFile& tokens() {
    static const TokenFile file{{token()}};
    return file;
}

struct Pair {
    Fd initiator;
    Fd acceptor;
};
Pair pair() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) abort();
    return {Fd(ends[0]), Fd(ends[1])};
}

ptrdiff_t open_descriptors() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

void expect_honest_session_works(bool plain) {
    auto sockets = pair();
    Endpoint endpoint;
    endpoint.plain = plain;
    auto deadline = steady_clock::now() + std::chrono::seconds(20);
    auto acceptor = std::async(std::launch::async, [&] {
        return accept_session(std::move(sockets.acceptor), tokens(), Welcome{}, {"x", true},
                              deadline);
    });
    auto initiator =
        greet_acceptor(std::move(sockets.initiator), endpoint, token(), Hello{}, deadline);
    if (!initiator || !acceptor.get()) abort();
}

Bytes first_flight(bool plain) {
    auto sockets = pair();
    Endpoint endpoint;
    endpoint.plain = plain;
    auto greeting = std::async(std::launch::async, [&] {
        return greet_acceptor(std::move(sockets.initiator), endpoint, token(), Hello{},
                              steady_clock::now() + std::chrono::seconds(5));
    });
    pollfd readable{sockets.acceptor.get(), POLLIN, 0};
    ::poll(&readable, 1, 5000);
    Bytes bytes(8192);
    ssize_t got = ::recv(sockets.acceptor.get(), bytes.data(), bytes.size(), 0);
    if (got <= 0) abort();
    bytes.resize(static_cast<size_t>(got));
    sockets.acceptor.reset();
    if (greeting.get()) abort();
    return bytes;
}

void append(Bytes& bytes, FrameBuilder& frame) {
    FrameEncoder encoder;
    if (!encoder.start(frame, Priority::urgent) || !encoder.next()) abort();
    for (const iovec& part : encoder.parts()) {
        const auto* data = static_cast<const uint8_t*>(part.iov_base);
        bytes.insert(bytes.end(), data, data + part.iov_len);
    }
}

// And the answers to the questions that follow.
Bytes hello_frames() {
    FrameBuilder frame;
    auto hello = frame.message().initHello();
    hello.setProtocolVersion(protocol_version);
    hello.setSessionId("s");
    auto host = describe_this_host();
    host.devices = {"/dev/kvm"};
    write_host(host, hello.initHost());
    Bytes bytes;
    append(bytes, frame);
    for (int id = 1; id <= clock_questions; id++) {
        frame.restart();
        frame.message().initPong().setId(static_cast<uint64_t>(id));
        append(bytes, frame);
    }
    return bytes;
}

// Without what differs from input to input.
std::string kind_of(const std::string& error) {
    for (std::string_view word : {"unknown token", "protocol version"}) {
        if (size_t at = error.find(word); at != std::string::npos) {
            return error.substr(0, at + word.size());
        }
    }
    return error;
}

// The first byte of an input says how it is sent.
constexpr uint8_t as_stranger = 0;
constexpr uint8_t with_proven_token = 1;

void send_all(int fd, std::span<const uint8_t> bytes) {
    // What the acceptor does not read in the end is its right; never wait long.
    while (!bytes.empty()) {
        ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent <= 0) return;
        bytes = bytes.subspan(static_cast<size_t>(sent));
    }
}

void speak_as_stranger(Fd socket, std::span<const uint8_t> bytes) {
    send_all(socket.get(), bytes);
    ::shutdown(socket.get(), SHUT_WR);
    std::array<char, 4096> sink;
    pollfd readable{socket.get(), POLLIN, 0};
    while (::poll(&readable, 1, 10'000) == 1) {
        if (::recv(socket.get(), sink.data(), sink.size(), 0) <= 0) return;
    }
}

void speak_with_token(Fd socket, std::span<const uint8_t> bytes) {
    auto stream = TlsStream::client(std::move(socket), token());
    if (!stream || !(*stream)->handshake(steady_clock::now() + std::chrono::seconds(10))) abort();
    iovec part{const_cast<uint8_t*>(bytes.data()), bytes.size()};
    if (!bytes.empty() && !(*stream)->write({&part, 1})) return;
    // Gone at once, it would not be there for the questions.
    linger(**stream, steady_clock::now() + std::chrono::seconds(10));
}

}  // namespace

std::vector<Bytes> seeds() {
    std::vector<Bytes> all;
    for (bool plain : {false, true}) {
        auto bytes = first_flight(plain);
        bytes.insert(bytes.begin(), as_stranger);
        all.push_back(bytes);
    }
    auto hello = hello_frames();
    for (uint8_t how : {as_stranger, with_proven_token}) {
        auto bytes = hello;
        bytes.insert(bytes.begin(), how);
        all.push_back(bytes);
    }
    expect_honest_session_works(true);  // whatever is opened once is open now
    expect_honest_session_works(false);
    descriptors_before = open_descriptors();
    return all;
}

void one_input(std::span<const uint8_t> input) {
    if (input.empty()) return;
    ++inputs;
    bool proven = input[0] % 2 == with_proven_token;
    auto bytes = input.subspan(1);
    auto sockets = pair();
    auto speak = proven ? speak_with_token : speak_as_stranger;
    auto peer = std::async(std::launch::async, speak, std::move(sockets.initiator), bytes);
    auto start = steady_clock::now();
    // Far more than the work takes: only a hang can reach it.
    auto deadline = start + std::chrono::seconds(20);
    auto result =
        accept_session(std::move(sockets.acceptor), tokens(), Welcome{}, {"x", true}, deadline);
    if (steady_clock::now() >= deadline) abort();
    if (result) {
        if (!proven) abort();  // nobody gets in without the token
        ++sessions;
    } else {
        ++outcomes[kind_of(result.error().what)];
    }
    result = fail("gone");
    peer.get();
    if (inputs % 1000 == 0) {
        expect_honest_session_works(inputs % 2000 == 0);
        if (open_descriptors() > descriptors_before) abort();
    }
}

bool summarize(std::string& line) {
    expect_honest_session_works(true);
    expect_honest_session_works(false);
    line = std::to_string(inputs) + " inputs, " + std::to_string(sessions) +
           " sessions with the token, " + std::to_string(outcomes.size()) + " different errors";
    for (const auto& [what, count] : outcomes) {
        line += "\n    " + std::to_string(count) + "  " + what;
    }
    return sessions > 0 && outcomes.size() >= 8;
}

}  // namespace gpr::fuzz
