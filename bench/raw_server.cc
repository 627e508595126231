// The baseline's answering end: for each request of one size a response of another, or as much
// memory as is asked for.
// Arguments: address and port to listen on. Says "ready" when it does. One process a connection.
#include <arpa/inet.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "bench/channel.h"
#include "bench/raw_exchange.h"

namespace {

void send_memory(bench::Channel& channel) {
    bench::RawMemory wanted{};
    std::vector<char> memory;
    while (channel.receive(&wanted, sizeof wanted)) {
        if (memory.size() < wanted.bytes) memory.resize(wanted.bytes, 'm');
        channel.send(memory.data(), wanted.bytes);
    }
}

[[noreturn]] void serve(int socket) {
    bench::RawExchange exchange{};
    if (recv(socket, &exchange, sizeof exchange, MSG_WAITALL) != sizeof exchange) _exit(1);
    auto channel = bench::Channel::accepted(socket, {exchange.tls != 0, exchange.spin != 0});
    if (exchange.memory != 0) {
        send_memory(channel);
        _exit(0);
    }
    std::vector<char> request(exchange.request_bytes);
    std::vector<char> response(exchange.response_bytes, 'r');
    while (channel.receive(request.data(), request.size())) {
        channel.send(response.data(), response.size());
    }
    _exit(0);
}

[[noreturn]] void die(const char* what) {
    std::perror(what);
    std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: raw_server ADDRESS PORT\n");
        return 2;
    }
    signal(SIGCHLD, SIG_IGN);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(std::atoi(argv[2])));
    inet_pton(AF_INET, argv[1], &address.sin_addr);
    if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) die("bind");
    if (listen(listener, 16) != 0) die("listen");
    std::printf("ready\n");
    std::fflush(stdout);
    for (;;) {
        int socket = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        if (socket < 0) continue;
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            serve(socket);
        }
        close(socket);
    }
}
