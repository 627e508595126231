// Operating errors are values: what was tried, on what, and the kernel's reason.
#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace gpr {

struct Error {
    int code = 0;      // positive errno; 0 if no errno applies
    std::string what;  // what was tried and on what, without the errno text

    [[nodiscard]] std::string message() const {
        return code == 0 ? what : fmt::format("{}: {}", what, std::strerror(code));
    }
};

template <class T = void>
using Result = tl::expected<T, Error>;

using Failure = tl::unexpected<Error>;

[[nodiscard]] inline Failure fail(int code, std::string what) {
    return Failure(Error{code, std::move(what)});
}

[[nodiscard]] inline Failure fail(std::string what) { return Failure(Error{0, std::move(what)}); }

// The libc convention: -1, and the reason in errno.
[[nodiscard]] inline Result<long> from_libc(long returned, const char* what) {
    if (returned == -1) return fail(errno, what);
    return returned;
}

// The kernel's own convention, as a raw syscall returns it: -4095..-1 is -errno.
[[nodiscard]] inline Result<long> from_kernel(long returned, const char* what) {
    if (returned < 0 && returned >= -4095) return fail(static_cast<int>(-returned), what);
    return returned;
}

// For broken invariants only: prints the place, then aborts.
[[noreturn]] void panic(const char* file, int line, const std::string& message);

}  // namespace gpr

#define GPR_ASSERT(condition)                                           \
    do {                                                                \
        if (!(condition)) ::gpr::panic(__FILE__, __LINE__, #condition); \
    } while (0)

// Evaluates to the value, or returns the error to the caller.
#define GPR_CONCAT_(a, b) a##b
#define GPR_CONCAT(a, b) GPR_CONCAT_(a, b)
#define GPR_TRY_(tmp, declaration, expression)           \
    auto tmp = (expression);                             \
    if (!tmp) return ::tl::make_unexpected(tmp.error()); \
    declaration = std::move(*tmp)
#define GPR_TRY(declaration, expression) \
    GPR_TRY_(GPR_CONCAT(gpr_try_, __LINE__), declaration, expression)
#define GPR_CHECK(expression)                                              \
    do {                                                                   \
        auto gpr_check_ = (expression);                                    \
        if (!gpr_check_) return ::tl::make_unexpected(gpr_check_.error()); \
    } while (0)
