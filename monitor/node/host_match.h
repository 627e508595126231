// Whether a program that began on one host can go on on another: pure, from the two handshakes.
#pragma once

#include <string>
#include <vector>

#include "transport/host.h"

namespace gpr {

// What the initiator has and a program may have seen there, and the acceptor lacks, in words a
// user can act on: "cpu feature avx512f", "page size 4096". Empty: they match.
std::vector<std::string> lacking_at(const HostDescription& acceptor,
                                    const HostDescription& initiator);

// Takes the feature out of the description; false if it has no such name here.
bool hide_feature(CpuDescription& cpu, const std::string& name);

// Of what lacking_at() says: can a program be kept from it, as far as it asks the C library?
bool can_be_masked(const std::vector<std::string>& lacking);
// A value for GLIBC_TUNABLES that hides these features from the C library, besides what `tunables`
// says already.
std::string with_masked_features(std::string tunables, const std::vector<std::string>& lacking);

}  // namespace gpr
