#include "transport/tls_stream.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace gpr {

namespace {

constexpr size_t record_bytes = 16u << 10;        // the largest of RFC 8446
constexpr size_t read_buffer_bytes = 256u << 10;  // the most that one recv may bring
constexpr const char* cipher_suite = "TLS_AES_128_GCM_SHA256";
constexpr unsigned char cipher_id[2] = {0x13, 0x01};

std::string openssl_reason() {
    unsigned long code = ERR_peek_last_error();
    const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
    return reason ? reason : "unknown error";
}

Failure tls_failure(const char* what) {
    return fail(EPROTO, fmt::format("{} ({})", what, openssl_reason()));
}

// OpenSSL takes a pre-shared key in the form of an artificial session to resume.
SSL_SESSION* session_from(SSL* ssl, const Token& token) {
    SSL_SESSION* session = SSL_SESSION_new();
    if (session &&
        SSL_SESSION_set1_master_key(session, token.secret.data(), token.secret.size()) == 1 &&
        SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, cipher_id)) == 1 &&
        SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1) {
        return session;
    }
    SSL_SESSION_free(session);
    return nullptr;
}

// Without lists of all old ciphers and digests by name, which take longer to make than all the
// rest.
void begin_openssl() {
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ADD_ALL_CIPHERS | OPENSSL_INIT_NO_ADD_ALL_DIGESTS, nullptr);
}

}  // namespace

int TlsStream::bio_write(BIO* bio, const char* data, size_t size, size_t* written) {
    auto* self = static_cast<TlsStream*>(BIO_get_data(bio));
    const auto* bytes = reinterpret_cast<const std::byte*>(data);
    self->outgoing_.insert(self->outgoing_.end(), bytes, bytes + size);
    *written = size;
    return 1;
}

int TlsStream::bio_read(BIO* bio, char* data, size_t size, size_t* got) {
    auto* self = static_cast<TlsStream*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    if (self->incoming_begin_ == self->incoming_end_ && !self->receive_more()) {
        if (self->receive_errno_ == 0 && !self->socket_ended_) BIO_set_retry_read(bio);
        return 0;
    }
    *got = std::min(self->incoming_end_ - self->incoming_begin_, size);
    memcpy(data, self->incoming_->data() + self->incoming_begin_, *got);
    self->incoming_begin_ += *got;
    return 1;
}

bool TlsStream::receive_more() {
    if (socket_drained_) return false;
    const auto buffer = receive_buffer({});
    auto transfer = socket_receive(buffer.space);
    if (!transfer) {
        receive_errno_ = transfer.error().code;
        return false;
    }
    socket_ended_ = transfer->ended;
    incoming_begin_ = 0;
    incoming_end_ = transfer->bytes;
    return transfer->bytes > 0;
}

long TlsStream::bio_control(BIO*, int command, long, void*) {
    return command == BIO_CTRL_FLUSH || command == BIO_CTRL_DUP ? 1 : 0;
}

int TlsStream::use_session(SSL* ssl, const EVP_MD*, const unsigned char** id, size_t* id_size,
                           SSL_SESSION** session) {
    auto* self = static_cast<TlsStream*>(SSL_get_app_data(ssl));
    *session = session_from(ssl, self->client_token_);
    *id = reinterpret_cast<const unsigned char*>(self->client_token_.id.data());
    *id_size = self->client_token_.id.size();
    return *session ? 1 : 0;
}

int TlsStream::find_session(SSL* ssl, const unsigned char* id, size_t id_size,
                            SSL_SESSION** session) {
    auto* self = static_cast<TlsStream*>(SSL_get_app_data(ssl));
    self->claimed_id_.assign(reinterpret_cast<const char*>(id), std::min<size_t>(id_size, 64));
    // An expired token still proves who asks; the greeting then refuses it and names it.
    self->token_ = self->server_tokens_->find({reinterpret_cast<const char*>(id), id_size});
    // For an unknown name the handshake fails as with a wrong secret, so that the peer learns no
    // names.
    Token nobody;
    if (!self->token_ && RAND_bytes(nobody.secret.data(), nobody.secret.size()) != 1) return 0;
    *session = session_from(ssl, self->token_ ? *self->token_ : nobody);
    return 1;
}

void TlsStream::prepare() {
    begin_openssl();
    std::array<int, 2> ends{};
    const auto token = new_token();
    constexpr int type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
    if (!token || socketpair(AF_UNIX, type, 0, ends.data()) != 0) return;
    const TokenFile tokens({*token});
    const auto client = TlsStream::client(Fd(ends[0]), *token);
    const auto server = TlsStream::server(Fd(ends[1]), tokens);
    if (!client || !server) return;
    constexpr int steps = 4;  // each takes what the other has sent
    for (int i = 0; i < steps; i++) {
        TlsStream& one = i % 2 == 0 ? **client : **server;
        ERR_clear_error();
        SSL_do_handshake(one.ssl_.get());
        static_cast<void>(one.flush());
    }
    std::array<std::byte, 64> words{};
    const iovec part{words.data(), words.size()};
    static_cast<void>((*client)->write({&part, 1}));
    static_cast<void>((*server)->read(words));
    static_cast<void>((*server)->write({&part, 1}));
    (*server)->ssl_.reset();
    server_context() = std::move((*server)->context_);
}

TlsStream::Context& TlsStream::server_context() {
    static Context context;
    return context;
}

Result<TlsStream::Context> TlsStream::make_context(Side side) {
    const bool server = side == Side::server;
    begin_openssl();
    Context made(SSL_CTX_new(server ? TLS_server_method() : TLS_client_method()));
    SSL_CTX* context = made.get();
    if (!context || SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_ciphersuites(context, cipher_suite) != 1 ||
        SSL_CTX_set_num_tickets(context, 0) != 1) {
        return tls_failure("cannot set up TLS");
    }
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    if (server) {
        SSL_CTX_set_psk_find_session_callback(context, find_session);
    } else {
        // We trust no certificate, so an acceptor without the token cannot offer one instead. The
        // acceptor has no certificate either, so a client needs a token.
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
        SSL_CTX_set_psk_use_session_callback(context, use_session);
    }
    return made;
}

Result<std::unique_ptr<TlsStream>> TlsStream::create(Fd socket, Side side) {
    std::unique_ptr<TlsStream> stream(new TlsStream(std::move(socket)));
    const bool server = side == Side::server;
    if (server) stream->context_ = std::move(server_context());
    if (!stream->context_) {
        GPR_TRY(stream->context_, make_context(side));
    }
    SSL_CTX* context = stream->context_.get();
    stream->bio_method_.reset(BIO_meth_new(BIO_TYPE_SOURCE_SINK, "gpr socket"));
    BIO_METHOD* method = stream->bio_method_.get();
    if (!method) return tls_failure("cannot set up TLS");
    BIO_meth_set_write_ex(method, bio_write);
    BIO_meth_set_read_ex(method, bio_read);
    BIO_meth_set_ctrl(method, bio_control);
    stream->ssl_.reset(SSL_new(context));
    BIO* bio = BIO_new(method);
    if (!stream->ssl_ || !bio) {
        BIO_free(bio);
        return tls_failure("cannot set up TLS");
    }
    BIO_set_data(bio, stream.get());
    BIO_set_init(bio, 1);
    SSL_set_bio(stream->ssl_.get(), bio, bio);
    SSL_set_app_data(stream->ssl_.get(), stream.get());
    if (server) {
        SSL_set_accept_state(stream->ssl_.get());
    } else {
        SSL_set_connect_state(stream->ssl_.get());
    }
    return stream;
}

Result<std::unique_ptr<TlsStream>> TlsStream::client(Fd socket, const Token& token) {
    GPR_TRY(auto stream, create(std::move(socket), Side::client));
    stream->client_token_ = token;
    return stream;
}

Result<std::unique_ptr<TlsStream>> TlsStream::server(Fd socket, const TokenFile& tokens) {
    GPR_TRY(auto stream, create(std::move(socket), Side::server));
    stream->server_tokens_ = &tokens;
    return stream;
}

tl::expected<void, TlsStream::HandshakeFailure> TlsStream::handshake(Deadline deadline) {
    auto network = [](const Error& error) {
        return tl::make_unexpected(HandshakeFailure{HandshakeFailure::Kind::network, error});
    };
    for (;;) {
        ERR_clear_error();
        int rc = SSL_do_handshake(ssl_.get());
        int why = rc == 1 ? SSL_ERROR_NONE : SSL_get_error(ssl_.get(), rc);
        auto failure = rc == 1 || why == SSL_ERROR_WANT_READ
                           ? tl::expected<void, HandshakeFailure>{}
                           : explain_handshake_failure(why);
        do {  // also sends the alert that tells the peer why
            auto flushed = flush();
            if (!flushed) return failure ? network(flushed.error()) : failure;
            if (unsent() == 0) break;
            auto ready = wait_for_socket(fd(), POLLOUT, deadline);
            if (!ready) return failure ? network(ready.error()) : failure;
        } while (true);
        if (!failure) return failure;
        if (rc == 1) break;
        if (auto ready = wait_for_socket(fd(), POLLIN, deadline); !ready) {
            return network(ready.error());
        }
    }
    if (SSL_session_reused(ssl_.get()) != 1) {
        return tl::make_unexpected(
            HandshakeFailure{HandshakeFailure::Kind::refused, {EACCES, "the token was not used"}});
    }
    return {};
}

tl::expected<void, TlsStream::HandshakeFailure> TlsStream::explain_handshake_failure(
    int ssl_error) {
    using Kind = HandshakeFailure::Kind;
    auto result = [](Kind kind, int code, std::string what) {
        return tl::make_unexpected(HandshakeFailure{kind, {code, std::move(what)}});
    };
    if (receive_errno_ != 0) return result(Kind::network, receive_errno_, "connection lost");
    if (socket_ended_ || ssl_error == SSL_ERROR_ZERO_RETURN) {
        return result(Kind::network, 0, "the peer closed the connection");
    }
    unsigned long code = ERR_peek_last_error();
    int reason = ERR_GET_REASON(code);
    // Alerts of the peer have numbers from 1000 on; others are errors that we found.
    bool alert = reason >= SSL_AD_REASON_OFFSET;
    bool ours = reason == SSL_R_BINDER_DOES_NOT_VERIFY || reason == SSL_R_BAD_PSK ||
                reason == SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM ||
                reason == SSL_R_NO_SUITABLE_KEY_SHARE || reason == SSL_R_NO_SHARED_CIPHER ||
                reason == SSL_R_CERTIFICATE_VERIFY_FAILED;
    return result(alert || ours ? Kind::refused : Kind::not_tls, 0,
                  fmt::format("TLS: {}", openssl_reason()));
}

Result<ByteStream::Transfer> TlsStream::read(std::span<std::byte> to) {
    size_t total = 0;
    while (total < to.size()) {
        ERR_clear_error();
        size_t got = 0;
        int rc = SSL_read_ex(ssl_.get(), to.data() + total, to.size() - total, &got);
        if (rc == 1) {
            total += got;
            if (!has_unread()) break;
            continue;
        }
        int why = SSL_get_error(ssl_.get(), rc);
        if (why == SSL_ERROR_WANT_READ) break;
        if (total > 0) break;  // the next read meets the end or the error again
        if (why == SSL_ERROR_ZERO_RETURN) return Transfer{0, true};
        if (receive_errno_ != 0) return fail(receive_errno_, "cannot receive");
        // Without TLS's closing message the end may have been forged; it is the end all the same.
        if (socket_ended_) return Transfer{0, true};
        return tls_failure("the encrypted stream is damaged");
    }
    // TLS answers some of what it reads by itself. If such an answer cannot be sent, the next write
    // reports it; what has been read is still good.
    if (unsent() > 0) (void)flush();
    return Transfer{total, false};
}

bool TlsStream::has_unread() const {
    return incoming_begin_ < incoming_end_ || SSL_has_pending(ssl_.get()) == 1;
}

ByteStream::ReceiveBuffer TlsStream::receive_buffer(std::span<std::byte>) {
    if (!incoming_) incoming_ = std::make_shared<std::vector<std::byte>>(read_buffer_bytes);
    return {*incoming_, incoming_};
}

bool TlsStream::arrived(size_t bytes) {
    bytes_in_ += bytes;
    incoming_begin_ = 0;
    incoming_end_ = bytes;
    socket_drained_ = bytes < incoming_->size();
    return false;
}

Result<> TlsStream::encrypt(const void* data, size_t size) {
    if (size == 0) return {};
    ERR_clear_error();
    size_t written = 0;
    // bio_write takes everything, so this is never partial and never would block.
    if (SSL_write_ex(ssl_.get(), data, size, &written) != 1 || written != size) {
        return tls_failure("cannot encrypt");
    }
    return {};
}

Result<size_t> TlsStream::write(std::span<const iovec> parts) {
    GPR_CHECK(flush());
    if (unsent() > 0) return size_t{0};
    size_t total = 0;
    stage_.clear();
    for (const iovec& part : parts) {
        const auto* data = static_cast<const std::byte*>(part.iov_base);
        size_t left = part.iov_len;
        total += left;
        while (left > 0) {
            size_t taken = left;
            if (stage_.empty() && left >= record_bytes) {
                taken = left - left % record_bytes;
                GPR_CHECK(encrypt(data, taken));
            } else {
                taken = std::min(left, record_bytes - stage_.size());
                stage_.insert(stage_.end(), data, data + taken);
                if (stage_.size() == record_bytes) {
                    GPR_CHECK(encrypt(stage_.data(), stage_.size()));
                    stage_.clear();
                }
            }
            data += taken;
            left -= taken;
        }
    }
    GPR_CHECK(encrypt(stage_.data(), stage_.size()));
    GPR_CHECK(flush());
    return total;
}

Result<> TlsStream::flush() {
    while (unsent() > 0) {
        iovec part{outgoing_.data() + outgoing_sent_, unsent()};
        GPR_TRY(size_t sent, socket_send({&part, 1}));
        if (sent == 0) return {};
        outgoing_sent_ += sent;
    }
    outgoing_.clear();
    outgoing_sent_ = 0;
    return {};
}

void TlsStream::finish_writing() {
    if (SSL_is_init_finished(ssl_.get()) == 1) {
        ERR_clear_error();
        SSL_shutdown(ssl_.get());
        (void)flush();
    }
    ByteStream::finish_writing();
}

}  // namespace gpr
