// What `gpr health` prints, from facts already gathered.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/kernel_features.h"
#include "transport/host.h"

namespace gpr {

// The verdict, with the causes of missing required features, each once with its cure.
std::string health_verdict(const KernelFeatures& features, bool is_root);

// Every feature with its state, what it is needed for, and the cure if it is missing.
std::string features_table(const KernelFeatures& features);

// Of this host, and of an acceptor if one was asked. Keys are never renamed.
nlohmann::json health_json(const KernelFeatures& features);
nlohmann::json peer_json(const std::string& name, const HostDescription& host,
                         const KernelFeatures& known);

// What a peer says about itself, and the features that this build needs and the peer did not name.
std::string peer_report(const std::string& name, const HostDescription& host,
                        const KernelFeatures& known);

// Required features that the peer did not name.
std::vector<const Feature*> lacking_at(const HostDescription& host, const KernelFeatures& known);

}  // namespace gpr
