#include "monitor/passed_fds.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>

namespace gpr {

std::vector<int> passed_fds(std::span<std::byte> control) {
    std::vector<int> found;
    msghdr header{};
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
        auto at = static_cast<size_t>(reinterpret_cast<std::byte*>(c) - control.data());
        size_t length = std::min<size_t>(c->cmsg_len, control.size() - at);
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS || length < CMSG_LEN(0)) {
            continue;
        }
        std::vector<int> fds((length - CMSG_LEN(0)) / sizeof(int));
        std::memcpy(fds.data(), CMSG_DATA(c), fds.size() * sizeof(int));
        found.insert(found.end(), fds.begin(), fds.end());
    }
    return found;
}

}  // namespace gpr
