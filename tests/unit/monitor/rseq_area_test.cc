// rseq(2) of an attached program, as the kernel would have answered it (kernel/rseq.c).
#include "monitor/tracee/rseq_area.h"

#include <doctest/doctest.h>

#include <array>
#include <cerrno>

namespace gpr {
namespace {

using Args = std::array<uint64_t, 4>;

constexpr uint64_t area = 0x7f0000000020, other = 0x7f0000000040;
constexpr uint64_t size = 32, signature = 0x53053053;

TEST_CASE("a thread registers once, and may again when it has unregistered") {
    RseqArea its;
    CHECK(register_rseq(its, Args{area, size, 0, signature}.data()) == 0);
    CHECK(its.address == area);
    CHECK(register_rseq(its, Args{area, size, 0, signature}.data()) == -EBUSY);
    CHECK(register_rseq(its, Args{other, size, 0, signature}.data()) == -EINVAL);
    CHECK(register_rseq(its, Args{area, size, 0, signature + 1}.data()) == -EPERM);
    CHECK(register_rseq(its, Args{area, size, rseq_unregister, signature + 1}.data()) == -EPERM);
    CHECK(register_rseq(its, Args{other, size, rseq_unregister, signature}.data()) == -EINVAL);
    CHECK(register_rseq(its, Args{area, size, rseq_unregister, signature}.data()) == 0);
    CHECK(its.size == 0);
    CHECK(register_rseq(its, Args{area, size, rseq_unregister, signature}.data()) == -EINVAL);
    CHECK(register_rseq(its, Args{other, 64, 0, signature}.data()) == 0);
}

TEST_CASE("what cannot be an area is refused") {
    RseqArea its;
    CHECK(register_rseq(its, Args{area + 4, size, 0, signature}.data()) == -EINVAL);
    CHECK(register_rseq(its, Args{area, 16, 0, signature}.data()) == -EINVAL);
    CHECK(register_rseq(its, Args{0, size, 0, signature}.data()) == -EINVAL);
    CHECK(register_rseq(its, Args{area, size, 2, signature}.data()) == -EINVAL);
    CHECK(its.size == 0);
}

}  // namespace
}  // namespace gpr
