// The program's mappings as gpr knows them. Every node keeps a replica, to which all changes are
// applied in the same order. A mapping is a view of a memory object; pages are identified by object
// and index.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/address.h"
#include "base/content_digest.h"
#include "base/fd.h"
#include "mm/chosen_functions.h"
#include "mm/page_protocol.h"

namespace gpr {

// What this node does with a mapping, in addition to what all nodes agree on.
enum class Backing : uint8_t {
    anonymous,    // private anonymous memory, registered with userfaultfd or not
    native_file,  // a file mapping of this node's kernel: always present, never registered
};

// Where the program's code in a mapping may run.
enum class CodeClass : uint8_t {
    neutral,  // wherever the thread is
    remote,   // at one acceptor only; in an acceptor's own list: here
    home,     // on node 0 only; in an acceptor's own list: not here
};

// Numbers for files of acceptors; each node has a range of its own.
inline constexpr unsigned source_node_shift = 24;
inline constexpr NodeId owner_of_source(uint32_t source) {
    return static_cast<NodeId>(source >> source_node_shift);
}

struct Mapping {
    Range range;
    int prot = 0;
    bool shared = false;           // MAP_SHARED to the program
    bool may_write = true;         // if shared: mprotect may make it writable
    bool locked = false;           // by mlock
    bool locked_on_fault = false;  // MLOCK_ONFAULT: untouched pages need not be resident
    bool grows_down = false;
    bool sealed = false;      // by mseal
    bool main_stack = false;  // the main stack, or room for it to grow
    // A page's initial content is that of the file, at the object's birth node.
    bool file = false;
    bool program_fills = false;  // the program fills missing pages, by a userfaultfd of its own
    // Usable on its birth node only: a device, or a shared file of that host.
    bool anchored = false;
    ObjectId object = 0;
    uint64_t object_page = 0;       // page of the object at range.begin
    NodeId birth = directory_node;  // of its object, unless that is shared
    // For `file`: the number of the acceptor's file that it shows; 0: a file of home.
    uint32_t source = 0;
    uint64_t content_offset = 0;  // offset of range.begin in the file, in bytes
    // Of that file of home; null: unknown. Read-only mappings only.
    std::shared_ptr<const ContentDigest> digest;
    CodeClass code = CodeClass::neutral;
    NodeId code_node = directory_node;  // home only, for remote code: the acceptor where it runs
    // Node-local:
    Backing backing = Backing::anonymous;
    bool registered = false;     // with this node's userfaultfd
    bool not_forked = false;     // home only: MADV_DONTFORK,
    bool wiped_on_fork = false;  // MADV_WIPEONFORK
    // For a private file mapping: the shared object of the session that shows the same file; 0:
    // none. Acceptors only know whether there is one.
    ObjectId follows = 0;
    // On the object's birth node: the file that untouched pages are read from.
    std::shared_ptr<Fd> content;
    // Code that must not run here: its pages are missing, so that instruction fetches fault. A page
    // is present for a moment when it is read as data.
    bool trapped = false;
    // Home only, for code that runs on any node: functions that run at an acceptor. Here they are
    // filled with breakpoints; the original code is in `content`.
    std::shared_ptr<const ChosenFunctions> functions;

    [[nodiscard]] PageKey key(Address a) const {
        return {object, object_page + (a.page() - range.begin) / page_size};
    }
};

// What mlockall has asked for future mappings.
enum class LockOfNew : uint8_t { none, all, on_fault };

class AddressSpace {
public:
    [[nodiscard]] LockOfNew lock_of_new() const { return lock_of_new_; }
    void lock_new(LockOfNew lock) { lock_of_new_ = lock; }

    [[nodiscard]] Mapping* find(Address a);
    // The first mapping that ends after a.
    [[nodiscard]] Mapping* find_from(Address a);
    [[nodiscard]] bool is_free(Range range) const;
    // Where the first gap in the range begins; the end of the range if there is none.
    [[nodiscard]] Address first_gap(Range range) const;

    // Replaces what is there, and returns the pieces that were replaced.
    std::vector<Mapping> map(Mapping mapping);
    std::vector<Mapping> unmap(Range range);
    // mremap: the views in `from` appear at `to`, which may be larger (the last mapping grows) or
    // smaller. Returns what this has unmapped: overwritten at `to`, or cut off at the end.
    std::vector<Mapping> move(Range from, Range to);
    // Splits mappings at the range's ends and visits those inside.
    template <class Visit>
    void for_each(Range range, Visit visit) {
        split(range.begin);
        split(range.end);
        for (auto it = mappings_.lower_bound(range.begin);
             it != mappings_.end() && it->first < range.end; ++it) {
            visit(it->second);
        }
    }
    // Visits every mapping that overlaps the range, without splitting.
    template <class Visit>
    void overlapping(Range range, Visit visit) const {
        auto it = mappings_.upper_bound(range.begin);
        if (it != mappings_.begin()) --it;
        for (; it != mappings_.end() && it->first < range.end; ++it) {
            if (it->second.range.overlaps(range)) visit(it->second);
        }
    }
    // Visits every mapping that shows this shared object, which may be mapped several times.
    template <class Visit>
    void shared_views(ObjectId object, Visit visit) const {
        auto it = shared_views_.lower_bound({object, {0}});
        for (; it != shared_views_.end() && it->first == object; ++it) {
            visit(mappings_.at(it->second));
        }
    }
    // Visits every mapping that shows pages [first, end) of an object that is not shared, in the
    // order of the pages.
    template <class Visit>
    void views(ObjectId object, uint64_t first, uint64_t end, Visit visit) const {
        auto it = by_object_.upper_bound({object, first});
        if (it != by_object_.begin() && std::prev(it)->first.first == object) --it;
        for (; it != by_object_.end() && it->first < std::pair{object, end}; ++it) {
            const Mapping& m = mappings_.at(it->second);
            if (m.object_page + m.range.size() / page_size > first) visit(m);
        }
    }
    // The address of a page of an object that is not shared; nullopt if no mapping shows it any
    // more.
    [[nodiscard]] std::optional<Address> address_of(PageKey key);
    [[nodiscard]] bool shows(ObjectId object) const;

    // The lowest free range of this size inside the window, page aligned.
    [[nodiscard]] std::optional<Address> find_gap(Range window, uint64_t size) const;

    [[nodiscard]] const std::map<Address, Mapping>& all() const { return mappings_; }
    void clear();

private:
    void split(Address at);
    void index(const Mapping& m);
    void unindex(const Mapping& m);

    LockOfNew lock_of_new_ = LockOfNew::none;
    std::map<Address, Mapping> mappings_;
    std::map<std::pair<ObjectId, uint64_t>, Address> by_object_;  // first page -> begin
    std::set<std::pair<ObjectId, Address>> shared_views_;         // begin of each
    // Results of earlier searches: there is no gap of this size in [from, to). Without them each
    // search would walk over all earlier mappings.
    struct NoGap {
        Address from;
        uint64_t size;
        Address to;
    };
    static constexpr size_t max_no_gaps = 16;

    void note_gap(Range around);

    mutable std::vector<NoGap> no_gaps_;
    mutable size_t next_no_gap_ = 0;  // the one to replace next
};

}  // namespace gpr
