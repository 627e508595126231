// A userfaultfd that the program has made. A mapping can be registered with one userfaultfd only,
// and that is ours; so the program holds a socket instead. We write what it reads there, and carry
// out its ioctls. docs/decisions/0020-userfaultfd-of-the-program.md
#pragma once

#include <linux/userfaultfd.h>

#include <cstdint>
#include <deque>
#include <vector>

#include "base/address.h"
#include "base/fd.h"
#include "transport/loop.h"

namespace gpr {

struct ProgramFaultfd {
    pid_t pid = 0;  // the process whose memory it watches
    Fd socket;      // our end
    uint64_t features = 0;
    bool agreed = false;  // UFFDIO_API has been called
    std::vector<Range> ranges;
    Watch closed;                  // the program has closed it everywhere
    std::deque<uffd_msg> waiting;  // messages that do not fit into the socket
    Watch room;
};

constexpr uint64_t faultfd_features = UFFD_FEATURE_THREAD_ID;
constexpr uint64_t faultfd_ioctls =
    1ULL << _UFFDIO_REGISTER | 1ULL << _UFFDIO_UNREGISTER | 1ULL << _UFFDIO_API;
constexpr uint64_t faultfd_range_ioctls =
    1ULL << _UFFDIO_WAKE | 1ULL << _UFFDIO_COPY | 1ULL << _UFFDIO_ZEROPAGE;

constexpr bool is_faultfd_ioctl(uint64_t command) { return (command >> 8 & 0xff) == UFFDIO; }

}  // namespace gpr
