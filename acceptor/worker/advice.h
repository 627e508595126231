// Advice about memory and questions about where its pages are: madvise, munlock and mincore.
#pragma once

#include <cstddef>
#include <vector>

#include "acceptor/worker/part.h"
#include "base/address.h"
#include "mm/address_space.h"

namespace gpr::worker {

class Advice {
public:
    explicit Advice(Worker& worker) : worker_(worker) {}

    Task<void> advise_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    void unlock_call(RemoteProcess& process, const Notification& n);
    Task<void> residence_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<void> add_resident(RemoteProcess& process, Notification n);

private:
    Task<int64_t> populate(RemoteProcess& process, Notification n, Range range);
    Task<void> discard_call(RemoteProcess& process, Notification n);
    void add_known(const AddressSpace& space, Address begin,
                   std::vector<std::byte>& resident) const;

    Worker& worker_;
};

}  // namespace gpr::worker
