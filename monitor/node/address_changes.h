// Changes of address spaces, the same on every node: what the kernel here has done is noted, and
// what another node has done is done here, too. Either way the list of mappings follows, pages of
// what is gone are forgotten, and the nodes that do not know yet are told. Under the lock of the
// metadata.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/task.h"
#include "monitor/node/address_change.h"
#include "monitor/paging/pager.h"

namespace gpr {

// What only home does about a change, or only an acceptor. made_at: the node whose thread asked
// for it.
class AddressSide {
public:
    virtual ~AddressSide() = default;
    virtual void tell(pid_t pid, const AddressChange& change, NodeId made_at) = 0;
    // A number that no object has had.
    virtual ObjectId new_object() = 0;
    // The mapping shows the file that the other object showed.
    virtual void show_same_file(pid_t pid, ObjectId other, Mapping& mapping) = 0;
    // Completes what another node has mapped by what this one knows. False: it cannot be.
    virtual bool admit(pid_t pid, Mapped& made, NodeId made_at) = 0;
    // Before memory goes out of sight: what the program wrote to a file there is in the file.
    virtual Task<void> save_shared(std::shared_ptr<Fragment> fragment, Range range) = 0;
    // In the place of what is there.
    virtual Task<void> show_shared(std::shared_ptr<Fragment> fragment, Mapping mapping) = 0;
    // The program may write there from now on: what shows a file becomes a copy of it.
    virtual Task<void> let_write(std::shared_ptr<Fragment> fragment, Range range) = 0;
    // These are not in the list any more.
    virtual void forget_shared(const std::vector<Mapping>& gone) = 0;
    // A change that another node has made cannot be made here.
    virtual void cannot_follow(pid_t pid, NodeId made_at, const std::string& why) = 0;
};

class AddressChanges {
public:
    AddressChanges(Pager& pager, NodeId self, AddressSide& side)
        : pager_(pager), self_(self), side_(side) {}

    // What another node has done.
    Task<void> apply(std::shared_ptr<Fragment> fragment, AddressChange change, NodeId made_at);

    // Of each of these, if made_at is this node, the kernel here has done its part.
    Task<void> map(std::shared_ptr<Fragment> fragment, Mapped made, NodeId made_at);
    Task<void> unmap(std::shared_ptr<Fragment> fragment, Range range, NodeId made_at);
    Task<void> protect(std::shared_ptr<Fragment> fragment, Range range, int prot, NodeId made_at);
    // apart: what is new at its end, of another object: Mapped tells of it.
    Task<void> note_move(std::shared_ptr<Fragment> fragment, Moved move, Range apart);
    // The kernel here is to do that, too. Its result.
    Task<int64_t> make_move(std::shared_ptr<Fragment> fragment, Moved move, Range apart,
                            NodeId made_at);
    // The content of these pieces is gone, which are all of the range that is not shared.
    void note_discarded(Fragment& fragment, Range range, const std::vector<Mapping>& pieces);
    // What a thread touched right below memory that grows. False: there can be none.
    Task<bool> grow_down(std::shared_ptr<Fragment> fragment, siginfo_t touch);
    // A mapping is new. asked: the call wants it locked, whatever mlockall does.
    void lock_new(Fragment& fragment, Range range, bool asked);

    // The parts of a change, for what does more in between: the mapping takes the place of what is
    // returned; and nobody waits for what is gone, or hides it.
    std::vector<Mapping> replace(Fragment& fragment, Mapping mapping);
    Task<void> settle(std::shared_ptr<Fragment> fragment, std::vector<Mapping> gone);

private:
    Task<void> show(std::shared_ptr<Fragment> fragment, Mapping mapping);
    Task<void> discard(std::shared_ptr<Fragment> fragment, Range range, NodeId made_at);
    Task<void> follow_move(std::shared_ptr<Fragment> fragment, Moved move, NodeId made_at);
    std::vector<Mapping> move_views(Fragment& fragment, const Moved& move, NodeId made_at);
    void keep_view(Fragment& fragment, Mapping old, const Moved& move, bool told);
    void watch(Fragment& fragment, Mapping& mapping, bool wanted);
    Task<void> map_grown(std::shared_ptr<Fragment> fragment, Range range);

    Pager& pager_;
    const NodeId self_;
    AddressSide& side_;
};

}  // namespace gpr
