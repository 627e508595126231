// Whether a program that began on one host can continue on another: pure, from the two handshakes.
#pragma once

#include <string>
#include <vector>

#include "transport/host.h"

namespace gpr {

// What the acceptor lacks although a program may have seen it at home, in words that a user can act
// on: "cpu feature avx512f", "page size 4096". Empty if the hosts match.
std::vector<std::string> lacking_at(const HostDescription& acceptor, const HostDescription& home);

// Removes the feature from the description; false if the name is unknown.
bool hide_feature(CpuDescription& cpu, const std::string& name);

// Whether all that lacking_at() returned can be hidden from programs that ask the C library.
bool can_be_masked(const std::vector<std::string>& lacking);
// A value for GLIBC_TUNABLES that hides these features, in addition to what `tunables` sets.
std::string with_masked_features(std::string tunables, const std::vector<std::string>& lacking);

}  // namespace gpr
