#include "tools/device_request.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "monitor/rules/path_rules.h"
#include "tools/count.h"

namespace gpr {
namespace {

using Names = std::vector<std::string>;

// A family has two variables: the numbers in the inner one count the devices that the outer one
// leaves.
struct Family {
    const char* name;
    const char* node;  // that every device of the family needs
    const char* outer;
    const char* inner;
};
constexpr Family families[] = {
    {"nvidia", "/dev/nvidiactl", "NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"},
    {"amd", "/dev/kfd", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"},
};

Names split_list(std::string_view text) {
    Names parts;
    std::string part;
    for (const char c : std::string(text) + ",") {
        if (c == ',') {
            parts.push_back(std::exchange(part, {}));
        } else if (c != ' ') {
            part += c;
        }
    }
    return parts;
}

bool is_number(const std::string& text) {
    constexpr size_t most_digits = 4;
    return !text.empty() && text.size() <= most_digits &&
           std::all_of(text.begin(), text.end(),
                       [](unsigned char c) { return std::isdigit(c) != 0; });
}

// nullopt: the variable does not restrict devices, or not in a way that we understand, and is left
// to the library. An empty list: no devices.
std::optional<Names> read_variable(const char* value) {
    if (value == nullptr) return std::nullopt;
    const std::string_view text = value;
    if (text == "all") return std::nullopt;
    if (text.empty() || text == "none" || text == "void") return Names{};
    Names names;
    for (std::string& name : split_list(text)) {
        // The libraries stop at the first entry that names no device.
        if (name.empty() || name.starts_with('-')) break;
        if (!is_number(name) && !name.starts_with("GPU-")) return std::nullopt;
        names.push_back(std::move(name));
    }
    return names;
}

std::string device_name(const Family& family, const std::string& name) {
    return is_number(name) ? fmt::format("{}:{}", family.name, std::stoul(name)) : name;
}

std::optional<Names> visible(const Family& family, const Environment& environment) {
    auto outer = read_variable(environment(family.outer));
    const auto inner = read_variable(environment(family.inner));
    if (outer) {
        for (std::string& name : *outer) name = device_name(family, name);
    }
    if (!inner) return outer;
    Names names;
    for (const std::string& name : *inner) {
        if (!outer || !is_number(name)) {
            names.push_back(device_name(family, name));
        } else if (const size_t place = std::stoul(name); place < outer->size()) {
            names.push_back((*outer)[place]);
        } else {
            break;  // as the libraries do
        }
    }
    return names;
}

}  // namespace

Result<> request_devices(const Settings& settings, const Environment& environment,
                         ExecOptions& options) {
    options.devices = settings.list(device_setting.name);
    if (settings.has(device_count_setting.name)) {
        GPR_TRY(options.device_count,
                parse_count(settings.text(device_count_setting.name), device_count_setting.name));
    }
    if (!options.devices.empty()) return {};
    PathRules paths(path_rules_of(options.rules), read_root_links());
    paths.keep_standby({});  // for profiles on standby the libraries obey the variables
    for (const Family& family : families) {
        if (paths.owner_of(family.node).owner == PathOwner::home) continue;
        const auto names = visible(family, environment);
        if (!names) continue;
        options.devices.insert(options.devices.end(), names->begin(), names->end());
        // Libraries read the inner variable; the outer one may be known to container tools only.
        if (names->empty()) options.variables.push_back({family.inner, ""});
    }
    return {};
}

}  // namespace gpr
