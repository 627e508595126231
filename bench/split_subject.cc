// Runs with --split all: touches memory that home has filled, makes calls that home serves.
// The argument is a file of at least `piece` bytes.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "bench/subject.h"

namespace bench {
namespace {

constexpr size_t page = 4096;
// Larger than what travels inline with a call: read() puts it into home's memory, in place.
constexpr size_t piece = 4 << 20;
constexpr size_t small_write = 64;
constexpr size_t small_read = 4096;

class Memory {
public:
    explicit Memory(int source) : source_(source) {}

    // Lets home write the first `bytes`, which leaves nothing of them here.
    std::byte* fill_at_home(size_t bytes) {
        bytes = (bytes + piece - 1) / piece * piece;
        reserve(bytes);
        for (size_t at = 0; at < bytes; at += piece) {
            if (pread(source_, base_ + at, piece, 0) != static_cast<ssize_t>(piece)) {
                die("cannot fill memory");
            }
        }
        return base_;
    }

private:
    void reserve(size_t bytes) {
        if (bytes <= size_) return;
        if (base_) munmap(base_, size_);
        void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at == MAP_FAILED) die("cannot map memory");
        base_ = static_cast<std::byte*>(at);
        size_ = bytes;
    }

    int source_;
    std::byte* base_ = nullptr;
    size_t size_ = 0;
};

// In random order, so that neither read-ahead nor stride detection hides the round trip.
template <typename Touch>
Samples touch_pages(Memory& memory, size_t count, Touch touch) {
    // Twice the pages that are touched: a run of neighbours is then rare.
    volatile std::byte* base = memory.fill_at_home(2 * count * page);
    std::vector<size_t> order(2 * count);
    std::iota(order.begin(), order.end(), size_t{0});
    static std::mt19937_64 random(1);
    std::shuffle(order.begin(), order.end(), random);
    Samples samples(count);
    for (size_t i = 0; i < count; i++) {
        volatile std::byte& byte = base[order[i] * page + random() % page];
        uint64_t begin = Ticks::now();
        touch(byte);
        samples[i] = Ticks::now() - begin;
    }
    return samples;
}

void look(volatile std::byte& byte) {
    std::byte value = byte;
    (void)value;
}

void change(volatile std::byte& byte) { byte = std::byte{1}; }

Samples stream(Memory& memory, size_t bytes) {
    const auto* words = reinterpret_cast<const uint64_t*>(memory.fill_at_home(bytes));
    uint64_t begin = Ticks::now();
    uint64_t sum = 0;
    for (size_t i = 0; i < bytes / sizeof *words; i++) sum += words[i];
    volatile uint64_t keep = sum;
    (void)keep;
    return {Ticks::now() - begin};
}

template <typename Call>
Samples repeat(size_t count, Call call) {
    Samples samples(count);
    for (size_t i = 0; i < count; i++) {
        uint64_t begin = Ticks::now();
        if (!call()) die("a measured call failed");
        samples[i] = Ticks::now() - begin;
    }
    return samples;
}

// Of a process that has written so much; a part of it is written again each time. The child ends
// at once.
class Forks {
public:
    Samples operator()(size_t count, size_t mib) {
        std::vector<std::byte>& memory = memories_[mib];
        if (memory.empty()) memory.resize(mib << 20, std::byte{1});
        Samples samples(count);
        for (uint64_t& sample : samples) {
            next_ = ~next_;
            for (size_t at = 0; at < memory.size(); at += rewritten * page) memory[at] = next_;
            uint64_t begin = Ticks::now();
            pid_t child = fork();
            if (child == 0) _exit(0);
            sample = Ticks::now() - begin;
            if (child < 0 || waitpid(child, nullptr, 0) != child) die("cannot fork");
        }
        return samples;
    }

private:
    static constexpr size_t rewritten = 16;  // one page of so many
    std::map<size_t, std::vector<std::byte>> memories_;
    std::byte next_{1};
};

int run(const char* source_name) {
    int source = open(source_name, O_RDONLY | O_CLOEXEC);
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (source < 0 || null < 0) die(source_name);
    Memory memory(source);
    static char buffer[small_read];
    Forks forks;
    return obey({
        {"fork_0", [&](size_t n) { return forks(n, 0); }},
        {"fork_16", [&](size_t n) { return forks(n, 16); }},
        {"fork_64", [&](size_t n) { return forks(n, 64); }},
        {"fork_1024", [&](size_t n) { return forks(n, 1024); }},
        {"fault_read", [&](size_t n) { return touch_pages(memory, n, look); }},
        {"fault_write", [&](size_t n) { return touch_pages(memory, n, change); }},
        {"write",
         [&](size_t n) {
             return repeat(n, [&] {
                 return write(null, buffer, small_write) == static_cast<ssize_t>(small_write);
             });
         }},
        {"read",
         [&](size_t n) {
             return repeat(n, [&] {
                 return pread(source, buffer, small_read, 0) == static_cast<ssize_t>(small_read);
             });
         }},
        {"stream", [&](size_t bytes) { return stream(memory, bytes); }},
        {"compute", measure_compute},
    });
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: split_subject FILE\n");
        return 2;
    }
    return bench::run(argv[1]);
}
