// usage: TARGET [-n ROUNDS] [-s SEED] [FILE...]
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

#include "fuzz.h"

namespace gpr::fuzz {
namespace {

using Random = std::mt19937_64;

size_t below(Random& random, size_t limit) { return limit == 0 ? 0 : random() % limit; }

void change_bytes(Bytes& input, Random& random) {
    size_t at = below(random, input.size());
    constexpr uint64_t edges[] = {0,      1,          0x7f,       0x80,       0xff,     0x7fff,
                                  0xffff, 0x7fffffff, 0xffffffff, UINT64_MAX, 1u << 20, 16u << 20};
    uint64_t value = random() % 2 == 0 ? edges[below(random, std::size(edges))] : random();
    size_t width = size_t{1} << below(random, 4);
    if (random() % 3 == 0) {
        input[at] ^= static_cast<uint8_t>(1u << below(random, 8));
    } else {
        memcpy(&input[at], &value, std::min(width, input.size() - at));
    }
}

void mutate(Bytes& input, const std::vector<Bytes>& all, Random& random) {
    auto at = [&] { return static_cast<ptrdiff_t>(below(random, input.size() + 1)); };
    switch (below(random, 10)) {
        case 0: input.resize(static_cast<size_t>(at())); break;
        case 1: {
            Bytes noise(below(random, 40));
            for (auto& byte : noise) byte = static_cast<uint8_t>(random());
            input.insert(input.begin() + at(), noise.begin(), noise.end());
            break;
        }
        case 2: {
            auto first = at();
            auto last = at();
            if (first > last) std::swap(first, last);
            input.erase(input.begin() + first, input.begin() + last);
            break;
        }
        case 3: {
            const Bytes& other = all[below(random, all.size())];
            auto from = static_cast<ptrdiff_t>(below(random, other.size() + 1));
            input.insert(input.begin() + at(), other.begin() + from, other.end());
            break;
        }
        default:
            if (!input.empty()) change_bytes(input, random);
    }
    constexpr size_t max_input = 1u << 18;
    if (input.size() > max_input) input.resize(max_input);
}

// The input that ends the program is written to a file: run the target with it to see it again.
char crash_path[256];
const Bytes* current = nullptr;

void save_current(int signal_number) {
    int file = ::open(crash_path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    if (current != nullptr && file >= 0 &&
        ::write(file, current->data(), current->size()) == static_cast<ssize_t>(current->size())) {
        (void)!::write(2, crash_path, strlen(crash_path));
        (void)!::write(2, "\n", 1);
    }
    ::signal(signal_number, SIG_DFL);
    ::raise(signal_number);
}

void run_mutations(uint64_t rounds, uint64_t seed) {
    auto all = seeds();
    Random random(seed);
    for (const Bytes& input : all) one_input(input);
    for (uint64_t i = 0; i < rounds; ++i) {
        Bytes input = all[below(random, all.size())];
        for (size_t n = 1 + below(random, 4); n > 0; --n) mutate(input, all, random);
        current = &input;
        one_input(input);
        current = nullptr;
    }
}

}  // namespace
}  // namespace gpr::fuzz

int main(int argc, char** argv) {
    using namespace gpr::fuzz;
    uint64_t rounds = 10'000;
    uint64_t seed = 1;
    int option = 0;
    while ((option = ::getopt(argc, argv, "n:s:")) != -1) {
        if (option == 'n') rounds = strtoull(optarg, nullptr, 10);
        if (option == 's') seed = strtoull(optarg, nullptr, 10);
        if (option == '?') return 2;
    }
    if (optind < argc) {
        for (int i = optind; i < argc; ++i) {
            std::ifstream file(argv[i], std::ios::binary);
            Bytes input{std::istreambuf_iterator<char>(file), {}};
            one_input(input);
        }
        return 0;
    }
    const char* name = strrchr(argv[0], '/');
    snprintf(crash_path, sizeof(crash_path), "/tmp/%s-%d.input", name ? name + 1 : argv[0],
             ::getpid());
    for (int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) ::signal(number, save_current);
    run_mutations(rounds, seed);
    std::string line;
    bool good = summarize(line);
    printf("%llu rounds, seed %llu: %s\n", static_cast<unsigned long long>(rounds),
           static_cast<unsigned long long>(seed), line.c_str());
    return good ? 0 : 1;
}
