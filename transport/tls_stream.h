// TLS 1.3 whose only credential is a token, used as an external pre-shared key (RFC 8446, 2.2 and
// 4.2.11). Both sides prove that they know it, x25519 gives forward secrecy, and there are no
// certificates.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <vector>

#include "transport/byte_stream.h"
#include "transport/token.h"

namespace gpr {

class TlsStream : public ByteStream {
public:
    static Result<std::unique_ptr<TlsStream>> client(Fd socket, const Token& token);
    // The tokens must outlive the handshake.
    static Result<std::unique_ptr<TlsStream>> server(Fd socket, const TokenFile& tokens);
    // Does what the first stream of a process waits for, by a handshake with itself.
    static void prepare();

    struct HandshakeFailure {
        enum class Kind {
            refused,  // the peer, or we, did not accept the token
            not_tls,  // the peer speaks something else
            network,  // connection lost, or timeout
        };
        Kind kind;
        Error error;
    };
    // Blocks until both sides have proven the token, or until the deadline.
    tl::expected<void, HandshakeFailure> handshake(Deadline deadline);

    // Server: the name that the client claimed, also if the proof failed. Any bytes are possible.
    [[nodiscard]] const std::string& claimed_id() const { return claimed_id_; }
    [[nodiscard]] const Token* token() const { return token_; }

    Result<Transfer> read(std::span<std::byte> to) override;
    [[nodiscard]] bool has_unread() const override;
    ReceiveBuffer receive_buffer(std::span<std::byte> plain) override;
    bool arrived(size_t bytes) override;
    Result<size_t> write(std::span<const iovec> parts) override;
    [[nodiscard]] size_t unsent() const override { return outgoing_.size() - outgoing_sent_; }
    Result<> flush() override;
    void finish_writing() override;

private:
    struct Deleter {
        void operator()(SSL_CTX* p) const { SSL_CTX_free(p); }
        void operator()(SSL* p) const { SSL_free(p); }
        void operator()(BIO_METHOD* p) const { BIO_meth_free(p); }
    };
    enum class Side { client, server };

    using ByteStream::ByteStream;
    static Result<std::unique_ptr<TlsStream>> create(Fd socket, Side side);
    Result<> encrypt(const void* data, size_t size);
    // Takes what the socket has, once all that had come is read. The loop must not be receiving
    // into the same buffer. False: nothing, see receive_errno_ and socket_ended_.
    bool receive_more();
    tl::expected<void, HandshakeFailure> explain_handshake_failure(int ssl_error);

    static int bio_write(BIO* bio, const char* data, size_t size, size_t* written);
    static int bio_read(BIO* bio, char* data, size_t size, size_t* got);
    static long bio_control(BIO* bio, int command, long number, void* pointer);
    static int use_session(SSL* ssl, const EVP_MD* md, const unsigned char** id, size_t* id_size,
                           SSL_SESSION** session);
    static int find_session(SSL* ssl, const unsigned char* id, size_t id_size,
                            SSL_SESSION** session);

    using Context = std::unique_ptr<SSL_CTX, Deleter>;
    static Result<Context> make_context(Side side);
    // What prepare() leaves to the first server of this process.
    static Context& server_context();

    std::unique_ptr<BIO_METHOD, Deleter> bio_method_;
    Context context_;
    std::unique_ptr<SSL, Deleter> ssl_;
    Token client_token_;
    const TokenFile* server_tokens_ = nullptr;
    const Token* token_ = nullptr;
    std::string claimed_id_;
    // Encrypted bytes that have been received and that TLS has not read yet. It reads record by
    // record: OpenSSL's own read-ahead would move all that is left of them for each.
    std::shared_ptr<std::vector<std::byte>> incoming_;
    size_t incoming_begin_ = 0;
    size_t incoming_end_ = 0;
    bool socket_drained_ = false;      // the last reception emptied the socket
    std::vector<std::byte> stage_;     // small parts are joined here into one record
    std::vector<std::byte> outgoing_;  // encrypted, for the socket
    size_t outgoing_sent_ = 0;
    int receive_errno_ = 0;
    bool socket_ended_ = false;
};

}  // namespace gpr
