#include "bench/channel.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace bench {

namespace {

// Its secrecy protects nothing: both ends are this bench.
constexpr unsigned char key[32] = {1, 2, 3, 4};
constexpr unsigned char aes_128_gcm_sha256[] = {0x13, 0x01};
constexpr char identity[] = "bench";

[[noreturn]] void die(const char* what) {
    std::perror(what);
    std::exit(1);
}

SSL_SESSION* new_session(SSL* tls) {
    SSL_SESSION* session = SSL_SESSION_new();
    const SSL_CIPHER* cipher = SSL_CIPHER_find(tls, aes_128_gcm_sha256);
    if (!session || !cipher || SSL_SESSION_set1_master_key(session, key, sizeof key) != 1 ||
        SSL_SESSION_set_cipher(session, cipher) != 1 ||
        SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) != 1) {
        die("cannot make a TLS session");
    }
    return session;
}

int use_session(SSL* tls, const EVP_MD*, const unsigned char** id, size_t* id_size,
                SSL_SESSION** session) {
    *id = reinterpret_cast<const unsigned char*>(identity);
    *id_size = sizeof identity - 1;
    *session = new_session(tls);
    return 1;
}

int find_session(SSL* tls, const unsigned char*, size_t, SSL_SESSION** session) {
    *session = new_session(tls);
    return 1;
}

constexpr size_t bulk_bytes = 256 << 10;

// Until they are flushed.
void buffer_writes(SSL* tls) {
    BIO* buffer = BIO_new(BIO_f_buffer());
    BIO* socket = SSL_get_wbio(tls);
    if (!buffer || BIO_set_write_buffer_size(buffer, bulk_bytes) != 1) die("cannot buffer");
    BIO_up_ref(socket);
    SSL_set0_wbio(tls, BIO_push(buffer, socket));
}

SSL* new_tls(int socket, bool is_server, bool bulk) {
    SSL_CTX* context = SSL_CTX_new(TLS_method());
    if (!context) die("cannot make a TLS context");
    SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
    SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256");
    SSL_CTX_set_psk_use_session_callback(context, use_session);
    SSL_CTX_set_psk_find_session_callback(context, find_session);
    SSL_CTX_set_num_tickets(context, 0);
    if (bulk) {
        SSL_CTX_set_read_ahead(context, 1);
        SSL_CTX_set_default_read_buffer_len(context, bulk_bytes);
    }
    SSL* tls = SSL_new(context);
    SSL_CTX_free(context);
    if (!tls || SSL_set_fd(tls, socket) != 1) die("cannot make a TLS connection");
    if (bulk) buffer_writes(tls);
    if ((is_server ? SSL_accept(tls) : SSL_connect(tls)) != 1) {
        std::fprintf(stderr, "the TLS handshake failed\n");
        std::exit(1);
    }
    return tls;
}

constexpr uint64_t spin_at_most_ns = 300'000;

uint64_t now_ns() {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

bool try_again(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

Channel::Channel(int socket, ChannelKind kind, bool is_server) : socket_(socket), spin_(kind.spin) {
    int on = 1;
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (kind.tls) tls_.reset(new_tls(socket_, is_server, kind.bulk));
    if (spin_) fcntl(socket_, F_SETFL, fcntl(socket_, F_GETFL) | O_NONBLOCK);
}

Channel Channel::accepted(int socket, ChannelKind kind) { return {socket, kind, true}; }

Channel Channel::connected(const std::string& host, int port, const RawExchange& exchange) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) die(host.c_str());
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) die("connect");
    if (::send(fd, &exchange, sizeof exchange, MSG_NOSIGNAL) != sizeof exchange) die("send");
    return {fd, {exchange.tls != 0, exchange.spin != 0, exchange.memory != 0}, false};
}

void Channel::send(const void* data, size_t bytes) {
    const auto* at = static_cast<const char*>(data);
    while (bytes > 0) {
        ssize_t sent = tls_ ? SSL_write(tls_.get(), at, static_cast<int>(bytes))
                            : ::send(socket_, at, bytes, MSG_NOSIGNAL);
        if (sent <= 0) {
            bool retry =
                tls_ ? SSL_get_error(tls_.get(), static_cast<int>(sent)) == SSL_ERROR_WANT_WRITE
                     : try_again(errno);
            if (!retry) die("send");
            continue;
        }
        at += sent;
        bytes -= static_cast<size_t>(sent);
    }
    if (tls_) static_cast<void>(BIO_flush(SSL_get_wbio(tls_.get())));
}

// While others are measured, a peer that spins must leave them its processor.
void Channel::rest(uint64_t since_ns) const {
    if (now_ns() - since_ns < spin_at_most_ns) return;
    pollfd entry{socket_, POLLIN, 0};
    poll(&entry, 1, -1);
}

bool Channel::receive(void* data, size_t bytes) {
    auto* at = static_cast<char*>(data);
    uint64_t begin_ns = spin_ ? now_ns() : 0;
    while (bytes > 0) {
        ssize_t got = tls_ ? SSL_read(tls_.get(), at, static_cast<int>(bytes))
                           : ::recv(socket_, at, bytes, 0);
        if (got <= 0) {
            bool retry =
                tls_ ? SSL_get_error(tls_.get(), static_cast<int>(got)) == SSL_ERROR_WANT_READ
                     : got < 0 && try_again(errno);
            if (!retry) return false;
            if (spin_) rest(begin_ns);
            continue;
        }
        at += got;
        bytes -= static_cast<size_t>(got);
    }
    return true;
}

}  // namespace bench
