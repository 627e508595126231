// What filling memory from another host costs at least: it receives pages and places each run of
// them with UFFDIO_COPY, and does nothing else. A subject (see subject.h) with one command, "fill",
// whose count is bytes.
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "bench/channel.h"
#include "bench/raw_exchange.h"
#include "bench/subject.h"

namespace {

constexpr size_t run_bytes = 128 << 10;

int open_userfault() {
    int fd = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC));
    uffdio_api api{};
    api.api = UFFD_API;
    if (fd < 0 || ioctl(fd, UFFDIO_API, &api) != 0) bench::die("userfaultfd");
    return fd;
}

// Pages that nobody has touched, which only the descriptor's holder can fill.
class AbsentMemory {
public:
    AbsentMemory(int userfault, size_t bytes) : userfault_(userfault), bytes_(bytes) {
        void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        uffdio_register range{};
        range.range = {reinterpret_cast<uint64_t>(at), bytes};
        range.mode = UFFDIO_REGISTER_MODE_MISSING;
        if (at == MAP_FAILED || ioctl(userfault_, UFFDIO_REGISTER, &range) != 0) {
            bench::die("cannot have memory filled");
        }
        begin_ = static_cast<std::byte*>(at);
    }
    ~AbsentMemory() { munmap(begin_, bytes_); }
    AbsentMemory(const AbsentMemory&) = delete;
    AbsentMemory& operator=(const AbsentMemory&) = delete;

    void fill(size_t offset, const std::vector<std::byte>& from, size_t bytes) const {
        uffdio_copy copy{};
        copy.dst = reinterpret_cast<uint64_t>(begin_ + offset);
        copy.src = reinterpret_cast<uint64_t>(from.data());
        copy.len = bytes;
        if (ioctl(userfault_, UFFDIO_COPY, &copy) != 0) bench::die("UFFDIO_COPY");
    }

private:
    int userfault_;
    size_t bytes_;
    std::byte* begin_;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        std::fprintf(stderr, "usage: memory_client ADDRESS PORT tcp|tls\n");
        return 2;
    }
    bench::RawExchange exchange{};
    exchange.tls = std::strcmp(argv[3], "tls") == 0;
    exchange.memory = 1;
    auto channel = bench::Channel::connected(argv[1], std::atoi(argv[2]), exchange);
    const int userfault = open_userfault();
    std::vector<std::byte> run(run_bytes);
    return bench::obey({{"fill", [&](size_t bytes) {
                             AbsentMemory memory(userfault, bytes);
                             bench::RawMemory wanted{bytes};
                             uint64_t begin = bench::Ticks::now();
                             channel.send(&wanted, sizeof wanted);
                             for (size_t done = 0; done < bytes;) {
                                 size_t now = std::min(run.size(), bytes - done);
                                 if (!channel.receive(run.data(), now)) bench::die("receive");
                                 memory.fill(done, run, now);
                                 done += now;
                             }
                             return bench::Samples{bench::Ticks::now() - begin};
                         }}});
}
