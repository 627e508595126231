#include "monitor/node/host_match.h"

#include <doctest/doctest.h>

namespace gpr {
namespace {

HostDescription host() {
    HostDescription h;
    h.page_size = 4096;
    h.cpu.xcr0 = 0xe7;
    h.cpu.leaves = {{1, 0, 0, 0, 0x10000000, 0}, {7, 0, 0, 0x00010020, 0, 0}};
    return h;
}

TEST_CASE("like hosts match") { CHECK(lacking_at(host(), host()).empty()); }

TEST_CASE("an acceptor may have more") {
    HostDescription better = host();
    better.cpu.leaves[1].ebx |= 1u << 29;
    better.cpu.xcr0 |= 0x60000;
    CHECK(lacking_at(better, host()).empty());
}

TEST_CASE("what the acceptor lacks is named") {
    HostDescription lesser = host();
    lesser.cpu.leaves[1].ebx = 0x20;
    lesser.cpu.xcr0 = 7;
    CHECK(lacking_at(lesser, host()) ==
          std::vector<std::string>{"cpu feature avx512f", "extended state 0xe0 (xcr0)"});
}

TEST_CASE("a leaf that is missing altogether lacks all its features") {
    HostDescription lesser = host();
    lesser.cpu.leaves.pop_back();
    CHECK(lacking_at(lesser, host()) ==
          std::vector<std::string>{"cpu feature avx2", "cpu feature avx512f"});
}

TEST_CASE("bits that say nothing to user code do not matter") {
    HostDescription odd = host();
    odd.cpu.leaves[0].ecx |= 1u << 31;  // runs under a hypervisor
    CHECK(lacking_at(host(), odd).empty());
}

TEST_CASE("an acceptor without AMX, or with less of it, is told apart") {
    HostDescription initiator = host();
    initiator.cpu.leaves[1].edx = 7u << 22 & ~(1u << 23);  // bf16, tile
    initiator.cpu.xcr0 |= 0x60000;
    CHECK(lacking_at(host(), initiator) ==
          std::vector<std::string>{"cpu feature amx_bf16", "cpu feature amx_tile",
                                   "extended state 0x60000 (xcr0)"});
    HostDescription lesser = initiator;
    CHECK(hide_feature(lesser.cpu, "amx_bf16"));
    CHECK(lacking_at(lesser, initiator) == std::vector<std::string>{"cpu feature amx_bf16"});
    HostDescription newer = initiator;
    newer.cpu.leaves.push_back({7, 1, 1u << 21, 0, 0, 1u << 8});
    newer.cpu.leaves.push_back({0x1e, 1, 1u << 4, 0, 0, 0});
    CHECK(lacking_at(initiator, newer) ==
          std::vector<std::string>{"cpu feature amx_fp16", "cpu feature amx_complex",
                                   "cpu feature cpuid.1e.1.eax bit 4"});
}

TEST_CASE("page sizes must agree") {
    HostDescription other = host();
    other.page_size = 65536;
    CHECK(lacking_at(other, host()) == std::vector<std::string>{"page size 4096"});
}

TEST_CASE("features are hidden by name, and a host without them is told apart") {
    auto lesser = host();
    CHECK(hide_feature(lesser.cpu, "avx512f"));
    CHECK(lacking_at(lesser, host()) == std::vector<std::string>{"cpu feature avx512f"});
    CHECK_FALSE(hide_feature(lesser.cpu, "avx1024"));
}

TEST_CASE("CPU features can be masked, a page size cannot") {
    CHECK(can_be_masked({}));
    CHECK(can_be_masked({"cpu feature avx2", "extended state 0xe0 (xcr0)"}));
    CHECK_FALSE(can_be_masked({"cpu feature avx2", "page size 4096"}));
}

TEST_CASE("the C library is told in its own words, after those of the user") {
    CHECK(with_masked_features("", {"cpu feature avx2", "cpu feature abm"}) ==
          "glibc.cpu.hwcaps=-AVX2,-LZCNT");
    CHECK(with_masked_features("glibc.malloc.check=3", {"cpu feature avx2"}) ==
          "glibc.malloc.check=3:glibc.cpu.hwcaps=-AVX2");
    CHECK(
        with_masked_features("glibc.cpu.hwcaps=-ERMS:glibc.malloc.check=3", {"cpu feature avx2"}) ==
        "glibc.cpu.hwcaps=-ERMS,-AVX2:glibc.malloc.check=3");
    // What the C library does not use it need not be told.
    CHECK(with_masked_features("a=b", {"cpu feature gfni", "extended state 0xe0 (xcr0)"}) == "a=b");
}

}  // namespace
}  // namespace gpr
