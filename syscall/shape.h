// What a system call's argument points to, in enough detail to send known buffers along.
#pragma once

#include <cstdint>

namespace gpr {

enum class Kind : uint8_t {
    none,          // the call has no such argument
    scalar,        // a number, or an address that the kernel does not follow
    fd,            // int: the kernel ignores the upper 32 bits
    raw,           // a pointer passed unchanged; coherence fetches what it reaches
    buffer,        // bytes whose number is known before the call
    string,        // NUL-terminated input, at most PATH_MAX
    strings,       // a NULL-terminated vector of strings (argv)
    iovec,         // an array of struct iovec, counted by another argument
    msghdr,        // struct msghdr with name, iovec and control
    sigmask_pair,  // pselect6's {sigset pointer, size}
    ioctl,         // depends on args[1]: see request.h
    fcntl,         // likewise
    prctl,         // depends on args[0]
};

enum class Direction : uint8_t { in, out, inout };

// How many bytes a buffer has.
enum class Extent : uint8_t {
    fixed,    // unit
    counted,  // args[index] * unit + extra
    bits,     // an fd_set of args[index] bits, in whole 64-bit words
    valued,   // the socklen_t that args[index] points to
};

// How many of them the call has written.
enum class Returned : uint8_t {
    nothing,
    success,      // all, if the result is no error
    positive,     // all, if the result is above zero (wait4's status)
    always,       // all: the kernel writes even if it fails (select's timeout)
    interrupted,  // all, if the call was interrupted (nanosleep's remainder)
    result,       // result * unit + extra
    share,        // this iovec element's share of the result, elements in order
    valued,       // the length that the kernel has written in another piece
};

struct Argument {
    Kind kind = Kind::none;
    Direction direction = Direction::in;
    Extent extent = Extent::fixed;
    Returned returned = Returned::nothing;
    uint16_t unit = 0;
    uint8_t extra = 0;
    uint8_t index = 0;        // the argument with the count
    bool narrow = false;      // that argument is an int: ignore its upper half
    bool names_file = false;  // a path that may belong to another node

    [[nodiscard]] constexpr bool is_pointer() const {
        return kind != Kind::none && kind != Kind::scalar && kind != Kind::fd;
    }
    bool operator==(const Argument&) const = default;
};

// The vocabulary of the tables. Argument indexes count from 0.
namespace shape {

inline constexpr Argument num{Kind::scalar};
inline constexpr Argument fd{Kind::fd};
inline constexpr Argument raw{Kind::raw};
inline constexpr Argument path = [] {
    Argument named{Kind::string};
    named.names_file = true;
    return named;
}();
inline constexpr Argument text{Kind::string};  // also for paths that are always home's
inline constexpr Argument argv{Kind::strings};
inline constexpr Argument ioctl_arg{Kind::ioctl};
inline constexpr Argument fcntl_arg{Kind::fcntl};
inline constexpr Argument prctl_arg{Kind::prctl};
inline constexpr Argument sigmask_pair{Kind::sigmask_pair};
inline constexpr Argument msghdr_in{Kind::msghdr, Direction::in};
inline constexpr Argument msghdr_out{Kind::msghdr, Direction::out};

constexpr Argument in(uint16_t bytes) {
    return {Kind::buffer, Direction::in, Extent::fixed, Returned::nothing, bytes};
}
constexpr Argument out(uint16_t bytes, Returned when = Returned::success) {
    return {Kind::buffer, Direction::out, Extent::fixed, when, bytes};
}
constexpr Argument inout(uint16_t bytes, Returned when = Returned::success) {
    return {Kind::buffer, Direction::inout, Extent::fixed, when, bytes};
}
// args[index] elements of `unit` bytes; `extra` is a header that is not counted.
constexpr Argument in_n(uint8_t index, uint16_t unit = 1, uint8_t extra = 0) {
    return {Kind::buffer, Direction::in, Extent::counted, Returned::nothing, unit, extra, index};
}
constexpr Argument out_n(uint8_t index, uint16_t unit = 1, uint8_t extra = 0) {
    return {Kind::buffer, Direction::out, Extent::counted, Returned::result, unit, extra, index};
}
constexpr Argument inout_n(uint8_t index, uint16_t unit, Returned when) {
    return {Kind::buffer, Direction::inout, Extent::counted, when, unit, 0, index};
}
constexpr Argument fd_set(uint8_t index) {
    return {Kind::buffer, Direction::inout, Extent::bits, Returned::success, 1, 0, index, true};
}
// Capacity and result in the socklen_t that args[index] points to.
constexpr Argument sized_by(uint8_t index) {
    return {Kind::buffer, Direction::out, Extent::valued, Returned::valued, 1, 0, index};
}
// The same, but the kernel may also read the buffer (getsockopt).
constexpr Argument sized_by_inout(uint8_t index) {
    return {Kind::buffer, Direction::inout, Extent::valued, Returned::valued, 1, 0, index};
}
constexpr Argument iovec_in(uint8_t index) {
    return {Kind::iovec, Direction::in, Extent::counted, Returned::nothing, 16, 0, index};
}
constexpr Argument iovec_out(uint8_t index) {
    return {Kind::iovec, Direction::out, Extent::counted, Returned::nothing, 16, 0, index};
}
// The argument with the count is an int.
constexpr Argument narrow(Argument a) {
    a.narrow = true;
    return a;
}

}  // namespace shape
}  // namespace gpr
