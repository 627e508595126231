// Profiles: named lists of split rules, each a TOML file with `description` and `split`.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tools/settings.h"

namespace gpr {

struct Profile {
    std::string name;
    std::string description;
    std::vector<std::string> rules;  // as on the command line
    std::string source;              // the file; or shipped_source
};

inline constexpr std::string_view shipped_source = "shipped with gpr";

// Profiles that the build puts into this binary, so that it needs no installed file
// (data/profiles).
struct ShippedProfile {
    std::string_view name;
    std::string_view toml;
};
std::span<const ShippedProfile> shipped_profiles();

// The user's folder, the administrator's, and the one installed with gpr.
std::vector<std::string> profile_folders(const Environment& environment);

class Profiles {
public:
    // The first folder that has NAME.toml decides; after all folders comes the binary itself.
    explicit Profiles(std::vector<std::string> folders) : folders_(std::move(folders)) {}

    // An error lists the existing profiles.
    [[nodiscard]] Result<Profile> find(const std::string& name) const;
    // Sorted.
    [[nodiscard]] std::vector<std::string> names() const;

private:
    std::vector<std::string> folders_;
};

}  // namespace gpr
