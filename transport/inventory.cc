#include "transport/inventory.h"

#include <algorithm>

#include "transport/texts.h"

namespace gpr {
namespace {

// Text of libraries and peers is shown to users: no control characters, and bounded length.
std::string clean(const std::string& text) { return printable(text.substr(0, most_text)); }
std::string clean(capnp::Text::Reader text) { return clean(std::string(text.cStr())); }

std::vector<std::string> clean(capnp::List<capnp::Text>::Reader from) {
    std::vector<std::string> texts;
    for (auto text : from) texts.push_back(clean(text));
    return texts;
}

unsigned at_most(size_t limit, size_t size) { return static_cast<unsigned>(std::min(limit, size)); }

void write_clean(const std::vector<std::string>& texts, size_t limit, auto init) {
    auto list = init(at_most(limit, texts.size()));
    for (unsigned i = 0; i < list.size(); ++i) list.set(i, clean(texts[i]));
}

void write_device(const Device& from, wire::Device::Builder to) {
    to.setId(clean(from.id));
    to.setFamily(clean(from.family));
    to.setName(clean(from.name));
    to.setUuid(clean(from.uuid));
    to.setPci(clean(from.pci));
    to.setDriver(clean(from.driver));
    to.setMemoryBytes(from.memory_bytes);
    write_clean(from.nodes, most_nodes_each, [&](unsigned size) { return to.initNodes(size); });
    write_clean(from.common_nodes, most_nodes_each,
                [&](unsigned size) { return to.initCommonNodes(size); });
    to.setWhole(from.whole);
    to.setSessions(from.sessions);
    to.setExclusive(from.exclusive);
}

Device read_device(wire::Device::Reader from) {
    return {clean(from.getId()),   clean(from.getFamily()), clean(from.getName()),
            clean(from.getUuid()), clean(from.getPci()),    clean(from.getDriver()),
            from.getMemoryBytes(), clean(from.getNodes()),  clean(from.getCommonNodes()),
            from.getWhole(),       from.getSessions(),      from.getExclusive()};
}

void write_nodes(const std::vector<DeviceNode>& nodes, capnp::List<wire::DeviceNode>::Builder to) {
    for (unsigned i = 0; i < to.size(); ++i) {
        to[i].setPath(clean(nodes[i].path));
        to[i].setMajor(nodes[i].major);
        to[i].setMinor(nodes[i].minor);
        to[i].setSysfs(clean(nodes[i].sysfs));
    }
}

void write_platform(const OpenclPlatform& from, wire::OpenclPlatform::Builder to) {
    to.setName(clean(from.name));
    to.setVendor(clean(from.vendor));
    to.setVersion(clean(from.version));
    auto list = to.initDevices(at_most(most_platform_devices, from.devices.size()));
    for (unsigned i = 0; i < list.size(); ++i) {
        list[i].setName(clean(from.devices[i].name));
        list[i].setKind(clean(from.devices[i].kind));
        list[i].setVersion(clean(from.devices[i].version));
        list[i].setDriver(clean(from.devices[i].driver));
        list[i].setComputeUnits(from.devices[i].compute_units);
        list[i].setMemoryBytes(from.devices[i].memory_bytes);
    }
}

OpenclPlatform read_platform(wire::OpenclPlatform::Reader from) {
    OpenclPlatform platform{
        clean(from.getName()), clean(from.getVendor()), clean(from.getVersion()), {}};
    for (auto device : from.getDevices()) {
        platform.devices.push_back({clean(device.getName()), clean(device.getKind()),
                                    clean(device.getVersion()), clean(device.getDriver()),
                                    device.getComputeUnits(), device.getMemoryBytes()});
    }
    return platform;
}

}  // namespace

void write_devices(const std::vector<Device>& devices, capnp::List<wire::Device>::Builder to) {
    for (unsigned i = 0; i < to.size(); ++i) write_device(devices[i], to[i]);
}

std::vector<Device> read_devices(capnp::List<wire::Device>::Reader from) {
    std::vector<Device> devices;
    for (auto device : from) devices.push_back(read_device(device));
    return devices;
}

void write_inventory(const Inventory& inventory, wire::Inventory::Builder to) {
    to.setAgeMs(inventory.age_ms);
    to.setCpuModel(clean(inventory.cpu_model));
    to.setCpuCount(inventory.cpu_count);
    write_clean(inventory.cpu_features, most_nodes,
                [&](unsigned size) { return to.initCpuFeatures(size); });
    to.setMemoryBytes(inventory.memory_bytes);
    to.setMemoryFreeBytes(inventory.memory_free_bytes);
    write_devices(inventory.devices,
                  to.initDevices(at_most(most_devices, inventory.devices.size())));
    write_nodes(inventory.nodes, to.initNodes(at_most(most_nodes, inventory.nodes.size())));
    auto platforms = to.initOpencl(at_most(most_platforms, inventory.opencl.size()));
    for (unsigned i = 0; i < platforms.size(); ++i) {
        write_platform(inventory.opencl[i], platforms[i]);
    }
    auto sources = to.initSources(at_most(most_platforms, inventory.sources.size()));
    for (unsigned i = 0; i < sources.size(); ++i) {
        sources[i].setName(clean(inventory.sources[i].name));
        sources[i].setState(clean(inventory.sources[i].state));
        sources[i].setDetail(clean(inventory.sources[i].detail));
    }
}

Inventory read_inventory(wire::Inventory::Reader from) {
    Inventory inventory;
    inventory.age_ms = from.getAgeMs();
    inventory.cpu_model = clean(from.getCpuModel());
    inventory.cpu_count = from.getCpuCount();
    inventory.cpu_features = clean(from.getCpuFeatures());
    inventory.memory_bytes = from.getMemoryBytes();
    inventory.memory_free_bytes = from.getMemoryFreeBytes();
    inventory.devices = read_devices(from.getDevices());
    for (auto node : from.getNodes()) {
        inventory.nodes.push_back(
            {clean(node.getPath()), node.getMajor(), node.getMinor(), clean(node.getSysfs())});
    }
    for (auto platform : from.getOpencl()) inventory.opencl.push_back(read_platform(platform));
    for (auto source : from.getSources()) {
        inventory.sources.push_back(
            {clean(source.getName()), clean(source.getState()), clean(source.getDetail())});
    }
    return inventory;
}

}  // namespace gpr
