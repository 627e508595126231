// Which devices a session gets. Pure: the devices, and who has which, are arguments.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "transport/handshake.h"

namespace gpr {

// The device nodes that one session can see.
struct DeviceUse {
    pid_t worker = -1;
    std::vector<std::string> nodes;
    bool exclusive = false;
};

// Sets `sessions` and `exclusive` of each device.
void note_uses(std::vector<Device>& devices, const std::vector<DeviceUse>& uses);

// In the order of the request. An error names the device, why it cannot be had, and what there is.
Result<std::vector<Device>> choose_devices(const std::vector<Device>& devices,
                                           const DeviceRequest& request);

// Device nodes to hide from a session with these devices. If it was given none, it has asked for
// none, and only those that others have exclusively are hidden.
std::vector<std::string> hidden_nodes(const std::vector<Device>& devices,
                                      const std::vector<Device>& given);

// The device nodes that a session's rules name.
std::vector<std::string> nodes_wanted(const std::vector<RemotePath>& paths,
                                      const std::vector<DeviceNode>& nodes);

// Checks that the session can see what it has been given; an error names the rule that it needs.
Result<> check_rules_show(const std::vector<Device>& given, const std::vector<RemotePath>& paths);

}  // namespace gpr
