// What `gpr health` prints, from facts already gathered.
#pragma once

#include <string>
#include <vector>

#include "base/kernel_features.h"
#include "transport/host.h"

namespace gpr {

// Every feature with its state, what it is needed for, and the cure where it is missing.
std::string features_report(const KernelFeatures& features);

// What a peer told about itself, with the features this build needs and the peer did not name.
std::string peer_report(const std::string& name, const HostDescription& host,
                        const KernelFeatures& known);

// Required features the peer did not name.
std::vector<const Feature*> lacking_at(const HostDescription& host, const KernelFeatures& known);

}  // namespace gpr
