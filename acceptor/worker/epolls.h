// What epoll descriptors of home watch here. The files that such a descriptor watches here are in a
// second epoll descriptor, which is here and which the program never sees. So this kernel knows
// about closed files, edges and EPOLLONESHOT.
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
