// Changes of address spaces, the same on every node. What this node's kernel has done is recorded;
// what another node has done is done here as well. In both cases the list of mappings is updated,
// pages of what is gone are forgotten, and the nodes that do not know yet are told. The caller must
// hold the `metadata` lock.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/task.h"
#include "monitor/node/address_change.h"
#include "monitor/paging/pager.h"

namespace gpr {

// What only home, or only an acceptor, does about a change. made_at: the node whose thread made the
// call.
class AddressSide {
public:
    virtual ~AddressSide() = default;
    virtual void tell(pid_t pid, const AddressChange& change, NodeId made_at) = 0;
    // A new object id.
    virtual ObjectId new_object() = 0;
    // Makes the mapping show the same file as the object `other`.
    virtual void show_same_file(pid_t pid, ObjectId other, Mapping& mapping) = 0;
    // Completes a mapping made by another node with what this node knows. False if it is not
    // acceptable.
    virtual bool admit(pid_t pid, Mapped& made, NodeId made_at) = 0;
    // Before memory is unmapped or made read-only: what the program wrote there reaches the file.
    virtual Task<void> save_shared(std::shared_ptr<Fragment> fragment, Range range) = 0;
    // Maps shared memory, replacing what is there.
    virtual Task<void> show_shared(std::shared_ptr<Fragment> fragment, Mapping mapping) = 0;
    // If this node has the content of the file that the mapping shows, maps that. Its pages need
    // not come from other nodes then. False if not: map anonymous memory instead.
    virtual Task<bool> show_content(std::shared_ptr<Fragment> fragment, Mapping mapping) = 0;
    // The program may write there from now on: mappings of a file become copies.
    virtual Task<void> let_write(std::shared_ptr<Fragment> fragment, Range range) = 0;
    // Others may write to the file from now on: its content is no longer what it was called.
    virtual Task<void> let_differ(std::shared_ptr<Fragment> fragment, Range range) = 0;
    // These mappings are no longer in the list.
    virtual void forget_shared(const std::vector<Mapping>& gone) = 0;
    // A change made by another node cannot be made here, or its memory cannot be watched.
    virtual void cannot_follow(pid_t pid, NodeId made_at, const std::string& why) = 0;
};

class AddressChanges {
public:
    AddressChanges(Pager& pager, NodeId self, AddressSide& side)
        : pager_(pager), self_(self), side_(side) {}

    // Applies a change that another node has made.
    Task<void> apply(std::shared_ptr<Fragment> fragment, AddressChange change, NodeId made_at);

    // For each of these: if made_at is this node, its kernel has done its part already.
    Task<void> map(std::shared_ptr<Fragment> fragment, Mapped made, NodeId made_at);
    Task<void> unmap(std::shared_ptr<Fragment> fragment, Range range, NodeId made_at);
    Task<void> protect(std::shared_ptr<Fragment> fragment, Range range, int prot, NodeId made_at);
    // apart: new memory at its end that belongs to another object; a `Mapped` reports it.
    Task<void> note_move(std::shared_ptr<Fragment> fragment, Moved move, Range apart);
    // Makes this node's kernel do the move as well. Returns its result.
    Task<int64_t> make_move(std::shared_ptr<Fragment> fragment, Moved move, Range apart,
                            NodeId made_at);
    // Faults in the range are reported to us from now on. False if there is nothing to watch any
    // more. Without memory to watch it, the program cannot go on: pages that other nodes hold would
    // read as zeros.
    bool watch_faults(Fragment& fragment, Range range);
    // The content of these pieces is gone; they are all private memory in the range.
    void note_discarded(Fragment& fragment, Range range, const std::vector<Mapping>& pieces);
    // Maps what a thread has touched just below memory that grows. False if nothing can be mapped
    // there.
    Task<bool> grow_down(std::shared_ptr<Fragment> fragment, siginfo_t touch);
    // The kernel itself has extended memory that grows, which it registered with it.
    Task<void> note_growth(std::shared_ptr<Fragment> fragment, Range range, int prot);
    // To be called for a new mapping. asked: the call wants it locked, whatever mlockall says.
    void lock_new(Fragment& fragment, Range range, bool asked);

    // Parts of a change, for callers that do more in between. replace() enters the mapping and
    // returns those that it replaces; settle() then makes sure that no thread waits for their pages
    // and no pending hide operation touches their addresses.
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
