// One end of a raw connection: TCP, or TLS 1.3 with a key both sides know, blocking or spinning.
#pragma once

#include <openssl/ssl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "bench/raw_exchange.h"

namespace bench {

struct ChannelKind {
    bool tls = false;
    bool spin = false;  // ask the socket again and again instead of sleeping until it has something
    bool bulk = false;  // many records of TLS are read at once
};

class Channel {
public:
    // Takes the socket. All errors end the program with a message.
    static Channel accepted(int socket, ChannelKind kind);
    static Channel connected(const std::string& host, int port, const RawExchange& exchange);

    void send(const void* data, size_t bytes);
    // False: the peer has closed.
    bool receive(void* data, size_t bytes);

private:
    Channel(int socket, ChannelKind kind, bool is_server);

    void rest(uint64_t since_ns) const;

    struct FreeTls {
        void operator()(SSL* tls) const { SSL_free(tls); }
    };
    int socket_;
    bool spin_;
    std::unique_ptr<SSL, FreeTls> tls_;
};

}  // namespace bench
