// The vdso of another kernel: the real image of this one, changed.
#include "acceptor/worker/vdso.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <random>

#include "transport/host.h"

using namespace gpr;

namespace {

using Image = std::vector<std::byte>;

uint64_t own_address() {
    FILE* maps = fopen("/proc/self/maps", "r");
    char line[512];
    uint64_t begin = 0;
    while (maps && fgets(line, sizeof line, maps)) {
        if (strstr(line, "[vdso]") && sscanf(line, "%lx", &begin) == 1) break;
    }
    if (maps) fclose(maps);
    return begin;
}

// The same image with another name for one function.
Image rename(Image image, std::string_view from, std::string_view to) {
    REQUIRE(from.size() == to.size());
    auto* text = reinterpret_cast<char*>(image.data());
    for (size_t i = 0; i + from.size() < image.size(); i++) {
        bool whole = i > 0 && text[i - 1] == 0 && text[i + from.size()] == 0;
        if (whole && std::string_view(text + i, from.size()) == from) {
            to.copy(text + i, to.size());
        }
    }
    return image;
}

// Mapped as the acceptor maps it, and its functions called.
class Mapped {
public:
    explicit Mapped(const Image& image)
        : size_(image.size()),
          at_(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
        REQUIRE(at_ != MAP_FAILED);
        std::memcpy(at_, image.data(), size_);
        REQUIRE(mprotect(at_, size_, PROT_READ | PROT_EXEC) == 0);
    }
    ~Mapped() { munmap(at_, size_); }
    Mapped(const Mapped&) = delete;
    Mapped& operator=(const Mapped&) = delete;

    template <class Function>
    Function* get(const VdsoFunction& function) const {
        return reinterpret_cast<Function*>(static_cast<char*>(at_) + function.offset);
    }

private:
    size_t size_;
    void* at_;
};

using ClockGettime = int(clockid_t, timespec*);
using Getcpu = int(unsigned*, unsigned*, void*);
using Getrandom = long(void*, size_t, unsigned, void*, size_t);

void check_clock(ClockGettime* function) {
    timespec before{}, there{}, after{};
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &before);
    CHECK(function(CLOCK_MONOTONIC, &there) == 0);
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &after);
    auto ns = [](const timespec& t) { return t.tv_sec * 1'000'000'000L + t.tv_nsec; };
    CHECK(ns(before) <= ns(there));
    CHECK(ns(there) <= ns(after));
}

}  // namespace

TEST_CASE("this kernel's functions are found") {
    auto functions = vdso_functions(own_vdso());
    REQUIRE(functions);
    CHECK(functions->contains("__vdso_clock_gettime"));
    CHECK(functions->contains("__vdso_gettimeofday"));
    CHECK(same_functions(own_vdso(), own_vdso()));
    CHECK(same_functions({}, {}));
    CHECK_FALSE(same_functions(own_vdso(), {}));
}

TEST_CASE("another kernel's functions go on in ours") {
    Image ours = own_vdso();
    auto proxy = vdso_proxy(ours, ours, own_address());
    REQUIRE(proxy);
    CHECK(proxy->size() == ours.size());
    CHECK(*proxy != ours);
    Mapped mapped(*proxy);
    auto functions = vdso_functions(ours);
    check_clock(mapped.get<ClockGettime>(functions->at("__vdso_clock_gettime")));
}

TEST_CASE("what ours lacks is left to system calls") {
    Image ours = own_vdso();
    Image lesser = rename(rename(ours, "__vdso_clock_gettime", "__vdso_clock_gettimf"),
                          "clock_gettime", "clock_gettimf");
    CHECK_FALSE(same_functions(ours, lesser));
    lesser = rename(rename(lesser, "__vdso_getcpu", "__vdso_getcpv"), "getcpu", "getcpv");
    auto functions = vdso_functions(ours);
    bool has_random = functions->contains("__vdso_getrandom");
    if (has_random) {
        lesser = rename(rename(lesser, "__vdso_getrandom", "__vdso_getrandon"), "getrandom",
                        "getrandon");
    }
    auto proxy = vdso_proxy(ours, lesser, own_address());
    REQUIRE(proxy);
    Mapped mapped(*proxy);
    check_clock(mapped.get<ClockGettime>(functions->at("__vdso_clock_gettime")));
    unsigned cpu = ~0U;
    CHECK(mapped.get<Getcpu>(functions->at("__vdso_getcpu"))(&cpu, nullptr, nullptr) == 0);
    CHECK(cpu < 4096);
    if (has_random) {
        char bytes[8];
        auto* random = mapped.get<Getrandom>(functions->at("__vdso_getrandom"));
        CHECK(random(bytes, sizeof bytes, 0, nullptr, ~size_t{0}) == -ENOSYS);
    }
}

TEST_CASE("a function that nobody knows is refused by name") {
    Image ours = own_vdso();
    Image newer = rename(ours, "__vdso_time", "__vdso_tide");
    auto proxy = vdso_proxy(newer, ours, own_address());
    REQUIRE_FALSE(proxy);
    CHECK(proxy.error().what.find("__vdso_tide") != std::string::npos);
}

TEST_CASE("whatever a peer sends for an image is refused, not believed") {
    Image ours = own_vdso();
    CHECK_FALSE(vdso_functions({}));
    CHECK_FALSE(vdso_functions(Image(100)));
    std::mt19937 random(1);
    for (int round = 0; round < 20000; round++) {
        Image broken = ours;
        // The headers and tables lie at the beginning and at the end.
        for (int i = 0; i < 3; i++) {
            size_t at = random() % 2 ? random() % 64 : random() % broken.size();
            broken[at] = static_cast<std::byte>(random());
        }
        if (round % 4 == 0) broken.resize(random() % broken.size());
        auto proxy = vdso_proxy(broken, ours, own_address());
        if (proxy) CHECK(proxy->size() == broken.size());
    }
}
