// systemd's readiness protocol, see sd_notify(3): one datagram to the socket in $NOTIFY_SOCKET.
#pragma once

#include <string_view>

namespace gpr {

// Does nothing without a service manager.
void tell_service_manager(std::string_view state);

}  // namespace gpr
