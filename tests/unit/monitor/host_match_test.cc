#include "monitor/host_match.h"

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

TEST_CASE("page sizes must agree") {
    HostDescription other = host();
    other.page_size = 65536;
    CHECK(lacking_at(other, host()) == std::vector<std::string>{"page size 4096"});
}

}  // namespace
}  // namespace gpr
