// Keeps home's lists of mappings up to date, wherever a change was made, and assigns ids to memory
// objects that are born at home.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/address.h"
#include "mm/page_protocol.h"
#include "monitor/home/part.h"
#include "monitor/node/address_changes.h"
#include "syscall/marshal.h"

namespace gpr::home {

class Layouts final : public AddressSide {
public:
    explicit Layouts(Home& home);

    AddressChanges changes;

    ObjectId new_object(NodeId birth);
    void announce(HomeProcess& process, const Mapping& mapping);
    Task<void> note_call(HomeProcess& process, Notification n, int64_t result, pid_t caller);
    Task<void> note_break(HomeProcess& process, uint64_t end, NodeId filler);
    // The object at the break if no page of it behind that is known, so that what comes next may
    // belong to it; else 0. filler: as above.
    [[nodiscard]] ObjectId object_to_continue(HomeProcess& process, NodeId filler) const;
    Task<Result<void>> show_file(HomeProcess& process, Mapping& mapping, pid_t caller, int fd);
    // The program's private memory there that shows files is about to become writable.
    Task<void> copy_files(std::shared_ptr<Fragment> fragment, Range range);
    // This kernel has made the mapping.
    Task<void> map_here(std::shared_ptr<Fragment> fragment, Mapping mapping);
    Task<void> apply_mapping(Frame frame, NodeId from);
    ObjectId next_object() { return next_object_++; }
    // Adds to mincore's result the pages that, as far as home knows, acceptors have, or that are on
    // their way.
    Task<void> add_resident_elsewhere(std::shared_ptr<Fragment> fragment, SyscallArguments args);

private:
    [[nodiscard]] std::vector<uint64_t> pages_known(const AddressSpace& space, Range range) const;
    Task<void> note_mmap(HomeProcess& process, Notification n, Address at, pid_t caller);
    Task<void> move_break(HomeProcess& process, BreakMoved moved, NodeId from);

    void tell(pid_t pid, const AddressChange& change, NodeId made_at) override;
    ObjectId new_object() override { return next_object(); }
    void show_same_file(pid_t pid, ObjectId other, Mapping& mapping) override;
    bool admit(pid_t pid, Mapped& made, NodeId from) override;
    Task<void> save_shared(std::shared_ptr<Fragment> fragment, Range range) override;
    Task<void> show_shared(std::shared_ptr<Fragment> fragment, Mapping mapping) override;
    Task<bool> show_content(std::shared_ptr<Fragment> fragment, Mapping mapping) override;
    Task<void> let_write(std::shared_ptr<Fragment> fragment, Range range) override;
    Task<void> let_differ(std::shared_ptr<Fragment> fragment, Range range) override;
    void forget_shared(const std::vector<Mapping>& gone) override;
    void cannot_follow(pid_t pid, NodeId made_at, const std::string& why) override;

    Home& home_;
    ObjectId next_object_ = 1;
};

}  // namespace gpr::home
