// Native Linux is the oracle: a call that goes through marshal, wire, bounce area, the real
// kernel and back must leave the same result and the same memory as the call made directly.
#pragma once

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "base/fd.h"
#include "base/hostile_memory.h"
#include "syscall/marshal.h"
#include "test_memory.h"

namespace gpr::oracle {

template <class T>
uint64_t word(T value) {
    if constexpr (std::is_null_pointer_v<T>)
        return 0;
    else if constexpr (std::is_pointer_v<T>)
        return reinterpret_cast<uint64_t>(value);
    else
        return static_cast<uint64_t>(value);
}

inline long kernel(uint32_t number, const SyscallArguments& a) {
    long result = syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    return result == -1 ? -errno : result;
}

class BounceArea {
public:
    BounceArea()
        : at_(mmap(nullptr, bounce_limit, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                   0)) {
        REQUIRE(at_ != MAP_FAILED);
        std::memset(at_, 0xaa, bounce_limit);
    }
    ~BounceArea() { munmap(at_, bounce_limit); }
    [[nodiscard]] Address address() const { return {word(at_)}; }
    [[nodiscard]] HostileMemory memory() const {
        return {static_cast<std::byte*>(at_), bounce_limit};
    }

private:
    void* at_;
};

inline void expect_elsewhere(const MarshalledCall& call, const SyscallArguments& placed) {
    for (const Piece& piece : call.pieces) {
        if (piece.parent == no_piece) CHECK(placed[piece.slot] != call.args[piece.slot]);
    }
}

template <class... A>
long forwarded(uint32_t number, A... a) {
    SyscallArguments args{word(a)...};
    OwnMemory memory;
    auto outcome = marshal(number, args, memory);
    REQUIRE(std::holds_alternative<MarshalledCall>(outcome));
    const auto& call = std::get<MarshalledCall>(outcome);
    auto at_home = parse_call(serialise_call(call));
    REQUIRE(at_home);
    BounceArea area;
    auto placed = place(*at_home, area.address(), area.memory());
    expect_elsewhere(call, placed);
    long result = kernel(number, placed);
    auto out = gather(*at_home, result, area.memory());
    auto scattered = scatter(call, out);
    REQUIRE(scattered);
    for (const MemoryWrite& w : scattered->writes) {
        std::memcpy(reinterpret_cast<void*>(w.to.value), w.bytes.data(), w.bytes.size());
    }
    return result;
}

template <class... A>
long direct(uint32_t number, A... a) {
    return kernel(number, SyscallArguments{word(a)...});
}

template <class T>
bool same(const T& a, const T& b) {
    return std::memcmp(&a, &b, sizeof(T)) == 0;
}

// Two results of one kind, with the same junk in both before the call.
template <class T>
struct Both {
    T by_forward, by_direct;
    Both() {
        std::memset(&by_forward, 0x5a, sizeof(T));
        std::memset(&by_direct, 0x5a, sizeof(T));
    }
    [[nodiscard]] bool agree() const { return same(by_forward, by_direct); }
};

struct Pipe {
    Fd in, out;
    Pipe() {
        int fds[2];
        REQUIRE(pipe(fds) == 0);
        out = Fd(fds[0]);
        in = Fd(fds[1]);
    }
};

}  // namespace gpr::oracle
