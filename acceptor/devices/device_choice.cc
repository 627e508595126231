#include "acceptor/devices/device_choice.h"

#include <algorithm>
#include <map>

#include "monitor/rules/path_rules.h"

namespace gpr {
namespace {

constexpr size_t shortest_uuid = std::string_view("GPU-1234").size();

bool has(const std::vector<std::string>& texts, const std::string& text) {
    return std::find(texts.begin(), texts.end(), text) != texts.end();
}

bool is_called(const Device& device, const std::string& name) {
    if (device.id == name || (!device.pci.empty() && device.pci == name)) return true;
    if (name.size() >= shortest_uuid && device.uuid.starts_with(name)) return true;
    return has(device.nodes, name);
}

bool is_free(const Device& device) { return device.sessions == 0; }
// Whether -n counts the device: one that a session can have alone.
bool is_countable(const Device& device) { return device.family != "kvm" && !device.nodes.empty(); }

template <class Wanted>
std::string ids_of(const std::vector<Device>& devices, Wanted wanted) {
    std::string text;
    for (const Device& device : devices) {
        if (wanted(device)) text += (text.empty() ? "" : ", ") + device.id;
    }
    return text.empty() ? "none" : text;
}

std::string in_words(const Device& device) {
    return device.name.empty() ? device.id : fmt::format("{} ({})", device.id, device.name);
}

std::string whose(const Device& device) {
    if (device.exclusive) return fmt::format("{} is held by a session alone", device.id);
    return fmt::format("{} is used by {} session{}", device.id, device.sessions,
                       device.sessions == 1 ? "" : "s");
}

Result<std::vector<Device>> named(const std::vector<Device>& devices,
                                  const std::vector<std::string>& names) {
    std::vector<Device> found;
    for (const std::string& name : names) {
        const auto device = std::find_if(devices.begin(), devices.end(),
                                         [&](const Device& d) { return is_called(d, name); });
        if (device == devices.end()) {
            return fail(
                fmt::format("no device here is called '{}'; there is {} ('gpr devices' says more)",
                            name, ids_of(devices, [](const Device&) { return true; })));
        }
        const bool twice = std::any_of(found.begin(), found.end(),
                                       [&](const Device& d) { return d.id == device->id; });
        if (!twice) found.push_back(*device);
    }
    return found;
}

Result<std::vector<Device>> shared(const std::vector<Device>& devices, std::vector<Device> wanted) {
    for (const Device& device : wanted) {
        if (!device.exclusive) continue;
        return fail(
            fmt::format("device {} is held by another session alone; free: {}; choose "
                        "another one, or wait until that session ends",
                        in_words(device), ids_of(devices, is_free)));
    }
    return wanted;
}

// All of one family, because a program uses one vendor's library: of the first family that has
// enough free devices.
Result<std::vector<Device>> so_many(const std::vector<Device>& among, uint32_t count) {
    std::map<std::string, std::vector<Device>> free;
    size_t most = 0;
    for (const Device& device : among) {
        if (!is_countable(device) || !is_free(device)) continue;
        auto& family = free[device.family];
        family.push_back(device);
        if (family.size() == count) return family;
        most = std::max(most, family.size());
    }
    std::string taken;
    for (const Device& device : among) {
        if (is_countable(device) && !is_free(device)) taken += "; " + whose(device);
    }
    const auto countable_and_free = [](const Device& d) { return is_countable(d) && is_free(d); };
    if (most == 0 && taken.empty()) {
        return fail(fmt::format(
            "{} device{} asked for and this acceptor has none that could be given ('gpr devices' "
            "says what it has)",
            count, count == 1 ? " was" : "s were"));
    }
    return fail(fmt::format(
        "{} device{} asked for; free: {}{}; ask for fewer, or wait until a "
        "session ends",
        count, count == 1 ? " was" : "s were", ids_of(among, countable_and_free), taken));
}

}  // namespace

void note_uses(std::vector<Device>& devices, const std::vector<DeviceUse>& uses) {
    for (Device& device : devices) {
        device.sessions = 0;
        device.exclusive = false;
        for (const DeviceUse& use : uses) {
            const bool uses_it =
                std::any_of(device.nodes.begin(), device.nodes.end(),
                            [&](const std::string& node) { return has(use.nodes, node); });
            if (!uses_it) continue;
            device.sessions++;
            device.exclusive = device.exclusive || use.exclusive;
        }
    }
}

Result<std::vector<Device>> choose_devices(const std::vector<Device>& devices,
                                           const DeviceRequest& request) {
    GPR_TRY(auto wanted, named(devices, request.names));
    if (request.count == 0) return shared(devices, std::move(wanted));
    return so_many(request.names.empty() ? devices : wanted, request.count);
}

std::vector<std::string> hidden_nodes(const std::vector<Device>& devices,
                                      const std::vector<Device>& given) {
    std::vector<std::string> hidden;
    for (const Device& device : devices) {
        const bool is_given = std::any_of(given.begin(), given.end(),
                                          [&](const Device& d) { return d.id == device.id; });
        const bool sibling_given = std::any_of(given.begin(), given.end(), [&](const Device& d) {
            return d.whole && d.family == device.family;
        });
        const bool hide =
            given.empty() ? device.exclusive && !device.whole : !is_given && !sibling_given;
        if (hide) hidden.insert(hidden.end(), device.nodes.begin(), device.nodes.end());
    }
    return hidden;
}

std::vector<std::string> nodes_wanted(const std::vector<RemotePath>& paths,
                                      const std::vector<DeviceNode>& nodes) {
    std::vector<std::string> wanted;
    for (const DeviceNode& node : nodes) {
        const bool covered = std::any_of(paths.begin(), paths.end(), [&](const RemotePath& rule) {
            if (!rule.target.empty()) return covers(rule.target, node.path);
            return covers(rule.glob, node.path);
        });
        if (covered) wanted.push_back(node.path);
    }
    return wanted;
}

Result<> check_rules_show(const std::vector<Device>& given, const std::vector<RemotePath>& paths) {
    for (const Device& device : given) {
        std::vector<DeviceNode> nodes;
        for (const std::string& path : device.nodes) nodes.push_back({path, 0, 0, ""});
        if (nodes.empty()) {
            return fail(fmt::format("device {} has no node in /dev here; its driver is not loaded",
                                    in_words(device)));
        }
        if (!nodes_wanted(paths, nodes).empty()) continue;
        return fail(
            fmt::format("device {} was asked for, and no split rule lets the program see "
                        "it; add '--split dev:{}', or a profile that names it",
                        in_words(device), device.nodes.front()));
    }
    return {};
}

}  // namespace gpr
