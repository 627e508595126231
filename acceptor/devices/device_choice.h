// Which devices a session gets. Pure: who has what is told, and so is what there is.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "transport/handshake.h"

namespace gpr {

// What one session can see of devices' nodes.
struct DeviceUse {
    pid_t worker = -1;
    std::vector<std::string> nodes;
    bool exclusive = false;
};

// Fills in `sessions` and `exclusive` of each device.
void note_uses(std::vector<Device>& devices, const std::vector<DeviceUse>& uses);

// In the order of the request. An error names the device, why it is not to be had, and what is.
Result<std::vector<Device>> choose_devices(const std::vector<Device>& devices,
                                           const DeviceRequest& request);

// Nodes that a session with the devices `given` must not see. Nothing given: it asked for none, and
// only what others have for themselves is hidden.
std::vector<std::string> hidden_nodes(const std::vector<Device>& devices,
                                      const std::vector<Device>& given);

// Those that the rules of a session name.
std::vector<std::string> nodes_wanted(const std::vector<RemotePath>& paths,
                                      const std::vector<DeviceNode>& nodes);

// The session must be able to see what it has been given: an error names the rule it needs.
Result<> check_rules_show(const std::vector<Device>& given, const std::vector<RemotePath>& paths);

}  // namespace gpr
