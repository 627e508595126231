// What epoll descriptors of home watch here. Such a descriptor is home's. What it is to watch here
// is put into another one, which is here and which the program never sees; so the kernel here knows
// of files that are closed, of edges and of what is for once only.
#pragma once

#include <cstdint>

#include "acceptor/worker/part.h"

namespace gpr::worker {

class Epolls {
public:
    explicit Epolls(Worker& worker) : worker_(worker) {}

    Task<void> epoll_control(RemoteProcess& process, RemoteThread& thread, Notification n);
    static Task<void> forget_epolls(RemoteProcess& process, uint64_t first, uint64_t last);

private:
    Worker& worker_;
};

}  // namespace gpr::worker
