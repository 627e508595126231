#include "transport/handshake.h"

#include <openssl/rand.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <future>
#include <limits>

#include "transport/greeting.h"
#include "transport/greeting_messages.h"
#include "transport/stream_link.h"
#include "transport/texts.h"
#include "transport/tls_stream.h"

namespace gpr {

template <class P>
Established<P>::Established() = default;
template <class P>
Established<P>::Established(Established&&) noexcept = default;
template <class P>
Established<P>& Established<P>::operator=(Established&&) noexcept = default;
template <class P>
Established<P>::~Established() = default;
template struct Established<Hello>;
template struct Established<Welcome>;

template <class P>
std::unique_ptr<Link> make_link(Loop& loop, Established<P> established) {
    const char* role = std::is_same_v<P, Hello> ? "initiator" : "acceptor";
    return std::make_unique<StreamLink>(loop, std::move(established.stream),
                                        std::move(established.receiver),
                                        fmt::format("{} {}", role, established.peer_name));
}
template std::unique_ptr<Link> make_link(Loop&, Established<Hello>);
template std::unique_ptr<Link> make_link(Loop&, Established<Welcome>);

namespace {

constexpr unsigned char tls_handshake_record = 0x16;  // RFC 8446, 5.1

std::string version_conflict(uint32_t initiator, uint32_t acceptor) {
    return fmt::format(
        "the initiator speaks protocol version {}, the acceptor version {}; install the same gpr "
        "on both",
        initiator, acceptor);
}

// The peer's clocks at the time when ours show `now`, if they showed `theirs` when ours showed
// `then`.
ClockSample later(const ClockSample& theirs, const ClockSample& then, const ClockSample& now) {
    // Unsigned, because a peer may claim any time.
    const auto sum = [](int64_t claimed, int64_t from, int64_t to) {
        return static_cast<int64_t>(static_cast<uint64_t>(claimed) +
                                    static_cast<uint64_t>(to - from));
    };
    return {sum(theirs.realtime_ns, then.realtime_ns, now.realtime_ns),
            sum(theirs.monotonic_ns, then.monotonic_ns, now.monotonic_ns),
            sum(theirs.boottime_ns, then.boottime_ns, now.boottime_ns)};
}

// --- acceptor --------------------------------------------------------------------------------

class AcceptorSide {
public:
    AcceptorSide(const TokenFile& tokens, const Welcome& ours, const AcceptOptions& options,
                 Deadline deadline)
        : tokens_(tokens), ours_(ours), options_(options), deadline_(deadline) {}

    Result<EstablishedInitiator> run(Fd socket) {
        auto first = peek(socket.get());
        if (!first) return failed(first.error());
        encrypted_ = *first == tls_handshake_record;
        if (encrypted_) {
            GPR_CHECK(start_tls(std::move(socket)));
        } else {
            GPR_CHECK(start_plain(std::move(socket)));
        }
        return greet();
    }

private:
    Failure failed(const Error& why) const {
        return fail(why.code, fmt::format("initiator {}: {}", options_.peer_name, why.what));
    }
    Failure failed(std::string why) const { return failed(Error{0, std::move(why)}); }
    // Tells the reason to both sides.
    Failure refused(const std::string& reason, const std::string& for_log) {
        greeting_->refuse(reason);
        return failed("refused: " + for_log);
    }
    Failure refused(const std::string& reason) { return refused(reason, reason); }

    Result<unsigned char> peek(int fd) const {
        for (;;) {
            unsigned char first = 0;
            ssize_t got = ::recv(fd, &first, 1, MSG_PEEK | MSG_DONTWAIT);
            if (got == 1) return first;
            if (got == 0) return fail("it connected and closed again");
            if (errno != EAGAIN && errno != EINTR) return fail(errno, "connection lost");
            GPR_CHECK(wait_for_socket(fd, POLLIN, deadline_));
        }
    }

    Result<> start_tls(Fd socket) {
        GPR_TRY(auto stream, TlsStream::server(std::move(socket), tokens_));
        auto done = stream->handshake(deadline_);
        if (done) {
            token_ = stream->token();
            greeting_.emplace(std::move(stream), deadline_);
            return {};
        }
        std::string id = printable(stream->claimed_id());
        bool refusal = done.error().kind == TlsStream::HandshakeFailure::Kind::refused;
        if (!refusal) return failed(done.error().error);
        linger(*stream, deadline_);
        if (id.empty()) return failed("refused: it offered no token");
        if (!stream->token()) return failed(fmt::format("refused: unknown token {}", id));
        return failed(fmt::format("refused: it does not know the secret of token {}", id));
    }

    Result<> start_plain(Fd socket) {
        greeting_.emplace(std::make_unique<PlainStream>(std::move(socket)), deadline_);
        auto frame = greeting_->receive();
        if (!frame) return failed(frame.error());
        if (!frame->message().isClaim()) return failed("broke the protocol: no claim");
        auto claim = frame->message().getClaim();
        if (!options_.allow_plain) {
            return refused("this acceptor wants TLS; use its address without tcp://");
        }
        uint32_t version = claim.getProtocolVersion();
        if (version != protocol_version) {
            return refused(version_conflict(version, protocol_version));
        }
        return exchange_proofs(claim);
    }

    Result<> exchange_proofs(wire::Claim::Reader claim) {
        std::string id = claim.getTokenId().cStr();
        token_ = tokens_.find(id);
        auto theirs = claim.getNonce();
        if (theirs.size() != sizeof(Nonce)) return failed("broke the protocol: bad nonce");
        if (!token_) {
            return refused(token_refusal(), fmt::format("unknown token {}", printable(id)));
        }
        Nonce initiator{};
        std::copy(theirs.begin(), theirs.end(), initiator.begin());
        GPR_TRY(Nonce acceptor, new_nonce());
        auto proof = token_proof(*token_, Prover::acceptor, initiator, acceptor);
        FrameBuilder builder;
        auto challenge = builder.message().initChallenge();
        challenge.setNonce(kj::arrayPtr(acceptor.data(), acceptor.size()));
        challenge.setProof(kj::arrayPtr(proof.data(), proof.size()));
        if (auto sent = greeting_->send(builder); !sent) return failed(sent.error());
        auto answer = greeting_->receive();
        if (!answer) return failed(answer.error());
        if (!answer->message().isProof()) return failed("broke the protocol: no proof");
        auto expected = token_proof(*token_, Prover::initiator, initiator, acceptor);
        if (!same_proof(answer->message().getProof().getProof(), expected)) {
            return refused(token_refusal(),
                           fmt::format("it does not know the secret of token {}", token_->id));
        }
        return {};
    }

    static std::string token_refusal() {
        return "refused the token; get a new one with 'gpr token new' there";
    }

    Result<EstablishedInitiator> greet() {
        auto frame = greeting_->receive();
        if (!frame) return failed(frame.error());
        if (!frame->message().isHello()) return failed("broke the protocol: no hello");
        auto hello = frame->message().getHello();
        if (hello.getProtocolVersion() != ours_.version) {
            return refused(version_conflict(hello.getProtocolVersion(), ours_.version));
        }
        if (token_->expired(now_seconds())) {
            auto when = token_->expiry_text(now_seconds());
            return refused(
                fmt::format("refused the token ({}); get a new one with 'gpr token new' there",
                            when),
                fmt::format("token {} {}", token_->id, when));
        }
        EstablishedInitiator result;
        result.peer = read_hello(hello);
        Welcome welcome = ours_;
        if (welcome.session_id.empty()) welcome.session_id = result.peer.session_id;
        if (welcome.node_id == 0) welcome.node_id = result.peer.node_id;
        // At the same time as admit(), which looks elsewhere, and may take all of the time.
        std::future<Result<>> admission;
        if (options_.admit) {
            // Deferred where there can be no more threads.
            admission = std::async(std::launch::async | std::launch::deferred,
                                   [&] { return options_.admit(result.peer, welcome); });
        }
        GPR_TRY(const auto compared, compare_clocks());
        if (admission.valid()) {
            auto admitted = admission.get();
            if (!admitted) return refused(admitted.error().message());
        }
        FrameBuilder builder;
        write_welcome(welcome, builder.message().initWelcome());
        if (auto sent = greeting_->send(builder); !sent) return failed(sent.error());
        result.peer.host.clock = later(compared.theirs, compared.ours, sample_clocks());
        result.peer_name = options_.peer_name;
        result.token_id = token_->id;
        result.encrypted = encrypted_;
        result.stream = greeting_->take_stream();
        result.receiver = greeting_->take_receiver();
        return result;
    }

    struct Clocks {
        ClockSample theirs, ours;  // at the same moment
    };

    // The error is half a round trip of the fastest answer at most. A clock that the peer sent with
    // another message would be late by however long we took to read it, and time would step back
    // when a thread crosses.
    Result<Clocks> compare_clocks() {
        Clocks best;
        int64_t fastest = std::numeric_limits<int64_t>::max();
        for (uint64_t id = 1; id <= clock_questions; id++) {
            FrameBuilder question;
            question.message().initPing().setId(id);
            const ClockSample asked = sample_clocks();
            if (auto sent = greeting_->send(question); !sent) return failed(sent.error());
            auto frame = greeting_->receive();
            const ClockSample heard = sample_clocks();
            if (!frame) return failed(frame.error());
            auto message = frame->message();
            if (!message.isPong() || message.getPong().getId() != id) {
                return failed("broke the protocol: no answer about its clocks");
            }
            int64_t took = heard.monotonic_ns - asked.monotonic_ns;
            const bool much_faster = took < fastest - fastest / 8;
            if (took < fastest) {
                fastest = took;
                const ClockSample half{took / 2, took / 2, took / 2};
                best = {read_clock(message.getPong().getClock()), later(asked, {}, half)};
            }
            if (id >= least_clock_questions && !much_faster) break;
        }
        return best;
    }

    const TokenFile& tokens_;
    const Welcome& ours_;
    const AcceptOptions& options_;
    Deadline deadline_;
    bool encrypted_ = false;
    std::optional<Greeting> greeting_;
    const Token* token_ = nullptr;
};

// --- home ------------------------------------------------------------------------------------

class HomeSide {
public:
    HomeSide(const Endpoint& endpoint, const Token& token, const HelloSource& source,
             Deadline deadline)
        : name_(endpoint.text()),
          plain_(endpoint.plain),
          token_(token),
          source_(source),
          deadline_(deadline) {}

    Result<EstablishedAcceptor> run(Fd socket) {
        if (token_.expired(now_seconds())) {
            return failed(fmt::format("token {} {}; get a new one with 'gpr token new' there",
                                      token_.id, token_.expiry_text(now_seconds())));
        }
        if (plain_) {
            ours_ = source_();
            GPR_CHECK(start_plain(std::move(socket)));
        } else {
            GPR_CHECK(start_tls(std::move(socket)));
            ours_ = source_();
        }
        return greet();
    }

private:
    Failure failed(const Error& why) const {
        return fail(why.code, fmt::format("acceptor {}: {}", name_, why.what));
    }
    Failure failed(std::string why) const { return failed(Error{0, std::move(why)}); }

    Failure refused_token() const {
        return fail(fmt::format(
            "acceptor {} refused the token {}; get a new one with 'gpr token new' there", name_,
            token_.id));
    }

    Result<> start_tls(Fd socket) {
        GPR_TRY(auto stream, TlsStream::client(std::move(socket), token_));
        auto done = stream->handshake(deadline_);
        if (done) {
            greeting_.emplace(std::move(stream), deadline_);
            return {};
        }
        using Kind = TlsStream::HandshakeFailure::Kind;
        const Error& why = done.error().error;
        if (done.error().kind == Kind::refused) return refused_token();
        if (done.error().kind == Kind::not_tls) {
            return failed(
                fmt::format("it does not speak TLS 1.3 ({}); is a gpr acceptor there?", why.what));
        }
        if (why.code == ETIMEDOUT) return failed(Error{ETIMEDOUT, "no answer to our greeting"});
        return failed(why);
    }

    Result<> start_plain(Fd socket) {
        greeting_.emplace(std::make_unique<PlainStream>(std::move(socket)), deadline_);
        GPR_TRY(Nonce initiator, new_nonce());
        FrameBuilder builder;
        auto claim = builder.message().initClaim();
        claim.setProtocolVersion(ours_.version);
        claim.setTokenId(token_.id);
        claim.setNonce(kj::arrayPtr(initiator.data(), initiator.size()));
        if (auto sent = greeting_->send(builder); !sent) return failed(sent.error());
        GPR_TRY(auto frame, receive());
        if (!frame.message().isChallenge()) return failed("it broke the protocol: no challenge");
        auto challenge = frame.message().getChallenge();
        auto nonce = challenge.getNonce();
        if (nonce.size() != sizeof(Nonce)) return failed("it broke the protocol: bad nonce");
        Nonce acceptor{};
        std::copy(nonce.begin(), nonce.end(), acceptor.begin());
        // The peer that listens there must know the secret, too.
        auto expected = token_proof(token_, Prover::acceptor, initiator, acceptor);
        if (!same_proof(challenge.getProof(), expected)) return refused_token();
        auto proof = token_proof(token_, Prover::initiator, initiator, acceptor);
        builder.restart();
        builder.message().initProof().setProof(kj::arrayPtr(proof.data(), proof.size()));
        if (auto sent = greeting_->send(builder); !sent) return failed(sent.error());
        return {};
    }

    Result<> tell_clock(uint64_t question) {
        FrameBuilder builder;
        auto answer = builder.message().initPong();
        answer.setId(question);
        write_clock(sample_clocks(), answer.initClock());
        if (auto sent = greeting_->send(builder); !sent) return failed(sent.error());
        return {};
    }

    // A refusal is an error here.
    Result<ReceivedFrame> receive() {
        auto frame = greeting_->receive();
        if (!frame) return failed(frame.error());
        if (!frame->message().isRefuse()) return frame;
        auto refuse = frame->message().getRefuse();
        uint32_t version = refuse.getProtocolVersion();
        if (version != ours_.version) return failed(version_conflict(ours_.version, version));
        std::string reason = printable(refuse.getReason().cStr());
        std::string_view text = reason;
        if (text.starts_with("refused the token")) {
            text.remove_prefix(strlen("refused the token"));
            return fail(fmt::format("acceptor {} refused the token {}{}", name_, token_.id, text));
        }
        if (text.starts_with("is full")) return fail(fmt::format("acceptor {} {}", name_, text));
        return failed(reason);
    }

    Result<EstablishedAcceptor> greet() {
        FrameBuilder builder;
        write_hello(ours_, builder.message().initHello());
        greeting_->trust_peer();
        if (auto sent = greeting_->send(builder); !sent) return failed(sent.error());
        GPR_TRY(auto frame, receive());
        for (int i = 0; i < clock_questions && frame.message().isPing(); i++) {
            GPR_CHECK(tell_clock(frame.message().getPing().getId()));
            GPR_TRY(frame, receive());
        }
        if (!frame.message().isWelcome()) return failed("it broke the protocol: no welcome");
        EstablishedAcceptor result;
        result.peer = read_welcome(frame.message().getWelcome());
        if (result.peer.version != ours_.version) {
            return failed(version_conflict(ours_.version, result.peer.version));
        }
        result.peer_name = name_;
        result.token_id = token_.id;
        result.encrypted = !plain_;
        result.stream = greeting_->take_stream();
        result.receiver = greeting_->take_receiver();
        return result;
    }

    std::string name_;
    bool plain_;
    const Token& token_;
    const HelloSource& source_;
    Hello ours_;  // once it has been asked for
    Deadline deadline_;
    std::optional<Greeting> greeting_;
};

}  // namespace

Result<EstablishedInitiator> accept_session(Fd socket, const TokenFile& tokens, const Welcome& ours,
                                            const AcceptOptions& options, Deadline deadline) {
    return AcceptorSide(tokens, ours, options, deadline).run(std::move(socket));
}

Result<EstablishedAcceptor> connect_session(const Endpoint& endpoint, const Token& token,
                                            const Hello& ours, Deadline deadline) {
    GPR_TRY(Fd socket, connect_endpoint(endpoint, deadline));
    return greet_acceptor(std::move(socket), endpoint, token, ours, deadline);
}

Result<EstablishedAcceptor> greet_acceptor(Fd socket, const Endpoint& endpoint, const Token& token,
                                           const Hello& ours, Deadline deadline) {
    const HelloSource known = [&ours] { return ours; };
    return greet_acceptor(std::move(socket), endpoint, token, known, deadline);
}

Result<EstablishedAcceptor> greet_acceptor(Fd socket, const Endpoint& endpoint, const Token& token,
                                           const HelloSource& ours, Deadline deadline) {
    return HomeSide(endpoint, token, ours, deadline).run(std::move(socket));
}

std::string new_session_id() {
    std::array<uint8_t, 8> random{};
    GPR_ASSERT(getrandom(random.data(), random.size(), 0) == static_cast<ssize_t>(random.size()));
    std::string text;
    for (uint8_t byte : random) text += fmt::format("{:02x}", byte);
    return text;
}

}  // namespace gpr
