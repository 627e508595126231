// What `gpr health` prints, from facts already gathered.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/kernel_features.h"
#include "transport/host.h"

namespace gpr {

// What is required and missing, each cause once with its cure, and the verdict.
std::string health_verdict(const KernelFeatures& features, bool is_root);

// Every feature with its state, what it is needed for, and the cure where it is missing.
std::string features_table(const KernelFeatures& features);

// Of this host, and of an acceptor where one was asked. Keys are never renamed.
nlohmann::json health_json(const KernelFeatures& features);
nlohmann::json peer_json(const std::string& name, const HostDescription& host,
                         const KernelFeatures& known);

// What a peer told about itself, with the features this build needs and the peer did not name.
std::string peer_report(const std::string& name, const HostDescription& host,
                        const KernelFeatures& known);

// Required features the peer did not name.
std::vector<const Feature*> lacking_at(const HostDescription& host, const KernelFeatures& known);

}  // namespace gpr
