// The baseline's asking end: round trips of fixed sizes, one at a time. A subject (see subject.h)
// with one command, "trips".
#include <sys/socket.h>

#include <cstring>

#include "bench/channel.h"
#include "bench/raw_exchange.h"
#include "bench/subject.h"

int main(int argc, char** argv) {
    if (argc != 7) {
        std::fprintf(stderr,
                     "usage: raw_client ADDRESS PORT REQUEST_BYTES RESPONSE_BYTES tcp|tls "
                     "block|spin\n");
        return 2;
    }
    bench::RawExchange exchange{};
    exchange.request_bytes = static_cast<uint32_t>(std::atoi(argv[3]));
    exchange.response_bytes = static_cast<uint32_t>(std::atoi(argv[4]));
    exchange.tls = std::strcmp(argv[5], "tls") == 0;
    exchange.spin = std::strcmp(argv[6], "spin") == 0;
    auto channel = bench::Channel::connected(argv[1], std::atoi(argv[2]), exchange);
    std::vector<char> request(exchange.request_bytes, 'q');
    std::vector<char> response(exchange.response_bytes);
    return bench::obey({{"trips", [&](size_t count) {
                             bench::Samples samples(count);
                             for (auto& sample : samples) {
                                 uint64_t begin = bench::Ticks::now();
                                 channel.send(request.data(), request.size());
                                 if (!channel.receive(response.data(), response.size()))
                                     bench::die("receive");
                                 sample = bench::Ticks::now() - begin;
                             }
                             return samples;
                         }}});
}
