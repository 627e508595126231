#include "monitor/node/passed_fds.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>

namespace gpr {

// Not by CMSG_NXTHDR, which in older C libraries does not check lengths.
std::vector<int> passed_fds(std::span<const std::byte> control) {
    std::vector<int> found;
    while (control.size() >= sizeof(cmsghdr)) {
        cmsghdr header;
        std::memcpy(&header, control.data(), sizeof header);
        if (header.cmsg_len < sizeof header) break;
        size_t length = std::min<size_t>(header.cmsg_len, control.size());
        if (header.cmsg_level == SOL_SOCKET && header.cmsg_type == SCM_RIGHTS) {
            std::vector<int> fds((length - sizeof header) / sizeof(int));
            std::memcpy(fds.data(), control.data() + sizeof header, fds.size() * sizeof(int));
            found.insert(found.end(), fds.begin(), fds.end());
        }
        control = control.subspan(std::min(CMSG_ALIGN(length), control.size()));
    }
    return found;
}

}  // namespace gpr
