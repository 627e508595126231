#include "acceptor/daemon/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "base/fd.h"

namespace gpr {

void tell_service_manager(std::string_view state) {
    const char* const name = getenv("NOTIFY_SOCKET");
    if (!name) return;
    const size_t length = strlen(name);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (length < 2 || length >= sizeof(address.sun_path)) return;
    memcpy(address.sun_path, name, length);
    if (name[0] == '@') address.sun_path[0] = '\0';  // an abstract socket
    const Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL,
           reinterpret_cast<const sockaddr*>(&address),
           static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length));
}

}  // namespace gpr
