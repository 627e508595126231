// What home has changed in a process's address space is changed here, too.
#pragma once

#include <memory>

#include "acceptor/worker/part.h"
#include "transport/wire.h"

namespace gpr::worker {

class MappingChanges {
public:
    explicit MappingChanges(Worker& worker) : worker_(worker) {}

    Task<void> apply_mapping(Frame frame);

private:
    Task<void> map(Fragment& fragment, wire::MappingView::Reader made);
    Task<void> unmap(Fragment& fragment, wire::AddressRange::Reader unmapped);
    Task<void> protect(std::shared_ptr<Fragment> fragment, wire::Protect::Reader change);
    Task<void> discard(Fragment& fragment, wire::AddressRange::Reader discarded);

    Worker& worker_;
};

}  // namespace gpr::worker
