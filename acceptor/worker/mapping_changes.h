// Applies home's changes of address spaces here, and tells home of those made here.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "acceptor/worker/part.h"
#include "monitor/node/address_changes.h"
#include "transport/wire.h"

namespace gpr::worker {

class MappingChanges final : public AddressSide {
public:
    explicit MappingChanges(Worker& worker);

    AddressChanges changes;

    Task<void> apply_mapping(Frame frame);

private:
    // For changes of shared objects. False if it is about something else.
    bool apply_to_object(wire::MappingChange::Reader change);

    void tell(pid_t pid, const AddressChange& change, NodeId made_at) override;
    ObjectId new_object() override;
    void show_same_file(pid_t pid, ObjectId other, Mapping& mapping) override;
    bool admit(pid_t pid, Mapped& made, NodeId made_at) override;
    Task<void> save_shared(std::shared_ptr<Fragment> fragment, Range range) override;
    Task<void> show_shared(std::shared_ptr<Fragment> fragment, Mapping mapping) override;
    Task<bool> show_content(std::shared_ptr<Fragment> fragment, Mapping mapping) override;
    Task<void> let_write(std::shared_ptr<Fragment> fragment, Range range) override;
    Task<void> let_differ(std::shared_ptr<Fragment> fragment, Range range) override;
    void forget_shared(const std::vector<Mapping>& gone) override;
    void cannot_follow(pid_t pid, NodeId made_at, const std::string& why) override;

    Worker& worker_;
};

}  // namespace gpr::worker
