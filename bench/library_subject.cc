// Runs with --split lib:*libgprbench*: all but one tiny function stays at home.
// The argument is any readable file.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/subject.h"

extern "C" long bench_remote(long x);

namespace bench {
namespace {

// Twice, once before, so that what is measured is warm.
Samples cross(size_t count) {
    Samples samples(count);
    long sum = bench_remote(bench_remote(0));
    for (size_t i = 0; i < count; i++) {
        uint64_t begin = Ticks::now();
        sum = bench_remote(sum);
        samples[i] = Ticks::now() - begin;
    }
    if (sum != static_cast<long>(count) + 2) die("the remote function computed a wrong result");
    return samples;
}

// What a program that lives on system calls does: look at files.
Samples look_at_file(const char* name, size_t count) {
    Samples samples(count);
    char buffer[512];
    for (size_t i = 0; i < count; i++) {
        uint64_t begin = Ticks::now();
        int fd = open(name, O_RDONLY | O_CLOEXEC);
        struct stat status {};
        if (fd < 0 || fstat(fd, &status) != 0 || read(fd, buffer, sizeof buffer) < 0) die(name);
        close(fd);
        samples[i] = Ticks::now() - begin;
    }
    return samples;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: library_subject FILE\n");
        return 2;
    }
    return bench::obey({
        {"cross", bench::cross},
        {"compute", bench::measure_compute},
        {"calls", [&](size_t n) { return bench::look_at_file(argv[1], n); }},
    });
}
