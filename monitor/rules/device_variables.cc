#include "monitor/rules/device_variables.h"

#include <algorithm>
#include <cstdlib>

namespace gpr {
namespace {

std::vector<Device> of_family(const std::vector<Device>& devices, std::string_view family) {
    std::vector<Device> found;
    for (const Device& device : devices) {
        if (device.family == family) found.push_back(device);
    }
    return found;
}

std::string number_of(const Device& device) { return device.id.substr(device.id.find(':') + 1); }

// The index of a device among those that are visible.
std::string place_among(const std::vector<Device>& given, const Device& device) {
    return std::to_string(std::count_if(given.begin(), given.end(), [&](const Device& other) {
        return std::stoul(number_of(other)) < std::stoul(number_of(device));
    }));
}

template <class Text>
std::string list_of(const std::vector<Device>& devices, Text text) {
    std::string list;
    for (const Device& device : devices) list += (list.empty() ? "" : ",") + text(device);
    return list;
}

// UUIDs do not depend on how the library numbers devices (CUDA's default is by speed).
void add_nvidia(const std::vector<Device>& given, std::vector<Variable>& variables) {
    const bool named = std::all_of(given.begin(), given.end(),
                                   [](const Device& device) { return !device.uuid.empty(); });
    const auto name = [&](const Device& device) {
        return named ? device.uuid : place_among(given, device);
    };
    variables.push_back({"CUDA_VISIBLE_DEVICES", list_of(given, name)});
    if (!named) variables.push_back({"CUDA_DEVICE_ORDER", "PCI_BUS_ID"});
}

// HIP_VISIBLE_DEVICES counts only devices that ROCR shows, so ROCR must hide none.
void add_amd(const std::vector<Device>& given, std::vector<Variable>& variables) {
    const auto number = [&](const Device& device) {
        return device.whole ? number_of(device) : place_among(given, device);
    };
    variables.push_back({"HIP_VISIBLE_DEVICES", list_of(given, number)});
    variables.push_back({"ROCR_VISIBLE_DEVICES", std::nullopt});
}

}  // namespace

std::vector<Variable> device_variables(const std::vector<Device>& given) {
    std::vector<Variable> variables;
    if (const auto nvidia = of_family(given, "nvidia"); !nvidia.empty()) {
        add_nvidia(nvidia, variables);
    }
    if (const auto amd = of_family(given, "amd"); !amd.empty()) add_amd(amd, variables);
    return variables;
}

std::string variables_text(const std::vector<Variable>& variables) {
    std::string text;
    for (const Variable& variable : variables) {
        text += variable.name + (variable.value ? "=" + *variable.value : "") + '\n';
    }
    return text;
}

void set_variables(const std::string& text) {
    size_t begin = 0;
    for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
        const std::string line = text.substr(begin, end - begin);
        const size_t equals = line.find('=');
        if (equals == std::string::npos) {
            unsetenv(line.c_str());
        } else {
            setenv(line.substr(0, equals).c_str(), line.substr(equals + 1).c_str(), 1);
        }
    }
}

}  // namespace gpr
