// Joins the coherence core to the programs' memory: faults in, page moves out. One per node.
#pragma once

#include <sys/user.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "mm/hot_sets.h"
#include "mm/page_agent.h"
#include "mm/page_directory.h"
#include "monitor/paging/fragment.h"
#include "transport/loop.h"

namespace gpr {

struct PagerStats {
    uint64_t faults = 0;
    uint64_t pages_in = 0;
    uint64_t pages_out = 0;
    uint64_t waited_ns = 0;  // some thread stood at a missing page, and none came
};

class Pager {
public:
    // send: carries a message to another node. directory: on node 0 only.
    using Send = std::function<void(NodeId to, bool bulk, const Message&)>;
    Pager(NodeId self, Loop& loop, PageDirectory* directory, Send send);

    // The fragment must be removed before it dies.
    void add_fragment(Fragment& fragment);
    void remove_fragment(Fragment& fragment);

    // Faults on trapped code go to this handler, which moves the thread, or calls serve().
    using CodeFault = std::function<void(Fragment&, Address at, bool write, Tid tid)>;
    void on_code_fault(CodeFault handler) { code_fault_ = std::move(handler); }
    // Faults elsewhere go there, too, if this says so.
    using AnyFault = std::function<bool(Fragment&, Address at, bool write, Tid tid)>;
    void on_any_fault(AnyFault asks) { any_fault_ = std::move(asks); }
    // So do faults on shared memory that is used at home, to which threads that need it go; and of
    // pages that home lends it keeps what is written there meanwhile. An object need not be known.
    void keep_shared_home() { shared_is_home_ = true; }
    void keep_shared_home(ObjectId object) { used_at_home_.insert(object); }
    // At home: others may write what is lent of this one, too.
    void expect_writers(ObjectId object) { shared_.at(object).has_writers = true; }
    [[nodiscard]] bool is_used_at_home(ObjectId object) const;
    // Brings the page here. Data of a trapped one can be read for a moment.
    void serve(Fragment& fragment, Address at, bool write, Tid tid);
    // The program may change code there from now on: it is not trapped any more, and all that this
    // node has of it is in place.
    Task<void> stop_trapping(std::shared_ptr<Fragment> fragment, Range range);
    // Code that was there is gone: nothing that was to hide it touches what is there now.
    Task<void> forget_trapped(const std::vector<Mapping>& gone);
    // Node 0, around a kernel's copy of the process's memory: all that others wrote, and all
    // trapped code, is here from the end of the first to the beginning of the second.
    Task<void> begin_fork(std::shared_ptr<Fragment> fragment);
    Task<void> end_fork(std::shared_ptr<Fragment> fragment);

    // On both nodes, around a fork whose memory stays where it is: no page of the process moves.
    // The first ends when none does as far as this node can tell: ask again when the others have
    // said the same.
    Task<void> begin_copy(std::shared_ptr<Fragment> fragment);
    Task<void> quiet(std::shared_ptr<Fragment> fragment);
    [[nodiscard]] bool is_quiet(const Fragment& fragment) const;
    void end_copy(Fragment& fragment);
    void copy_object(ObjectId from, ObjectId to);
    // Marks what is shared with other nodes in memory that the kernel has copied.
    void protect_copies(Fragment& fragment);

    // Metadata: the same calls at every node. The caller maps and unmaps; this keeps the pages.
    void add_object(ObjectId object, NodeId birth);
    // Pieces of mappings whose content is gone. Other nodes are told at once, before anything else
    // is awaited.
    void discard(const std::vector<Mapping>& pieces);
    // The same for pieces that are no longer in the list of mappings: an object that nobody sees
    // any more is forgotten.
    void discard_unmapped(const AddressSpace& space, const std::vector<Mapping>& pieces);

    // Memory that several mappings, also of several processes, show (pager_shared.cc). memfd: where
    // its pages are on this node; none on node 0, where the kernel's own mappings have them.
    void add_shared(ObjectId object, Fd memfd, uint64_t pages);
    void resize_shared(ObjectId object, uint64_t pages);
    void erase_shared(ObjectId object);
    [[nodiscard]] bool is_shared(ObjectId object) const { return shared_.contains(object); }
    [[nodiscard]] uint64_t shared_pages(ObjectId object) const;
    [[nodiscard]] int shared_memfd(ObjectId object) const;
    // Where the mapping shows pages that are here: to write is to ask. What is not here is marked
    // when it comes, so that a mapping costs what is used of it.
    void protect_present(Fragment& fragment, const Mapping& mapping) const;
    // Node 0: brings what was written elsewhere home; write: and leaves no copies there.
    Task<void> collect_shared(std::vector<ObjectId> objects, Access access);
    // Node 0: until they are released as often, the others get no page of the objects.
    void hold_shared(const std::vector<ObjectId>& objects);
    void release_shared(const std::vector<ObjectId>& objects);
    // Somebody waits for that.
    [[nodiscard]] bool holds_back(const std::vector<ObjectId>& objects) const;
    // Node 0: the object's file may lack room for a page (pager_room.cc).
    void expect_no_room(ObjectId object) { shared_.at(object).may_lack_room = true; }

    // Node 0, while the kernel changes what mappings of shared memory a process has, until our list
    // of them says the same: what they show in between may be anything.
    class ViewChange {
    public:
        explicit ViewChange(Pager* pager) : pager_(pager) {
            if (pager_) pager_->views_changing_++;
        }
        ~ViewChange() {
            if (pager_) pager_->views_changing_--;
        }
        ViewChange(const ViewChange&) = delete;
        ViewChange& operator=(const ViewChange&) = delete;

    private:
        Pager* pager_;
    };
    // Of what lies in the ranges.
    [[nodiscard]] ViewChange change_views(const AddressSpace& space, std::span<const Range> ranges);

    void on_message(NodeId from, Message message);
    // What waits to be sent to the other nodes; when it becomes nothing, on_drained() is called.
    void watch_queue(std::function<uint64_t()> bytes) { queued_bytes_ = std::move(bytes); }
    void on_drained() { serve_read_ahead(); }
    void on_progress(Tid tid);
    void on_past_progress(Tid tid);  // told some time after it happened
    void on_thread_gone(Tid tid);
    void on_thread_end(Tid tid);  // nowhere any more

    // Hot sets. A thread leaves for another node with these registers: what it needed there the
    // last times goes along. Gives the pages that have not been sent yet: wait for them before the
    // thread itself is sent, lest it comes first and misses them. alone: no other thread of the
    // program can touch the memory here before somebody waits for removed(); so copies that are
    // given up need not be gone yet when that is said.
    std::vector<PageKey> send_along(Fragment& fragment, Tid tid, const user_regs_struct& regs,
                                    NodeId to, bool alone);
    Task<void> sent(std::vector<PageKey> pages);
    Task<void> removed();
    [[nodiscard]] bool is_removing() const { return !removing_.empty(); }
    // What the thread missed here since it came, as it travels: page number << 1 | write. And what
    // it missed there, when it comes back.
    std::vector<uint64_t> take_missed(Tid tid);
    void on_missed(Tid tid, const std::vector<uint64_t>& missed);

    // Makes the pages of the range present with that access, all at the same time. False: a part
    // of it is not mapped.
    Task<bool> acquire(Fragment& fragment, Range range, Access access);
    // The same, and the kernel has them mapped too, also those that nobody ever touched.
    Task<bool> make_resident(Fragment& fragment, Range range, Access access);
    // The same for several ranges at once, which then stay here until release(): for what the
    // kernel does to memory without waiting for a page. Who holds must not want more. 0: there is
    // nothing to hold.
    Task<uint64_t> hold(Fragment& fragment, std::vector<Range> ranges, Access access);
    void release(uint64_t hold);
    // All objects of a process that has ended. Who still means to touch its memory finds nothing
    // mapped any more; gives what was.
    std::vector<Mapping> forget(AddressSpace& space);
    // Writes into the program's memory what the program may then see; acquires what it needs.
    // False: a part of it is not mapped, or the program itself could not: EFAULT.
    Task<bool> write(Fragment& fragment, Address to, std::span<const std::byte> bytes);
    // The same for reading.
    Task<bool> read(Fragment& fragment, Address from, std::span<std::byte> bytes);
    // A string that ends with a zero within `most` bytes. Nothing: it does not, or is not mapped.
    Task<std::optional<std::string>> read_text(Fragment& fragment, Address from, size_t most);
    // Memory whose missing pages the program provides (pager_faultfd.cc). asks: a thread here waits
    // for one.
    using AskProgram = std::function<void(Fragment&, Address at, bool write, Tid tid)>;
    void on_unfilled(AskProgram asks) { ask_program_ = std::move(asks); }
    void let_program_fill(Fragment& fragment, Range range, bool fills);
    void wake_unfilled(Fragment& fragment, Range range);
    Task<int> fill(std::shared_ptr<Fragment> fragment, Address at, std::span<const std::byte> page);
    // Memory that devices have pinned (pager_pinned.cc): it stays where it is. probe: devices here
    // may have, so a page that is to be shared is taken, and put back, which a pinned one refuses.
    void probe_for_pins() { probes_pins_ = true; }
    // asks: a thread here wants a page that is pinned elsewhere. Without it, it waits.
    using AskPinned = std::function<void(Fragment&, Address at, Tid tid)>;
    void on_pinned(AskPinned asks) { ask_pinned_ = std::move(asks); }
    void serve_later(Fragment& fragment, Address at, Tid tid);
    // A page that is ours but was never touched: gives it what it was born with. False: its file
    // ends before it.
    bool materialise(Fragment& fragment, const Mapping& mapping, Address at);
    // The signal may be for a page that is not there: its file ends before it. Whether it is; else
    // the thread may touch it again.
    std::optional<Address> absent_page(Fragment& fragment, const siginfo_t& info) const;
    Task<bool> is_beyond_end(std::shared_ptr<Fragment> fragment, Address at, Tid tid);
    // The process will be ended, and must not see memory that is not what it was.
    void give_up(Fragment& fragment);

    [[nodiscard]] PagerStats stats() const;
    // Threads that stand at a missing page: at least as many of them cannot run.
    [[nodiscard]] size_t faulting() const { return faulting_.size(); }
    [[nodiscard]] Presence presence(PageKey key) const { return agent_.presence(key); }
    // A thread here has to wait for this private data until it comes from elsewhere.
    [[nodiscard]] bool misses(const Mapping& mapping, Address at, bool write) const;

private:
    // The part of a run that is contiguous in one mapping of one fragment.
    struct Piece {
        Fragment* fragment;
        Mapping* mapping;
        Address address;
        uint32_t first;  // page of the run
        uint32_t count;
    };

    void read_faults(Fragment& fragment);
    void note_missed(const Mapping& mapping, Address at, bool write, Tid tid);
    void serve_read_ahead();
    void on_fault(Fragment& fragment, Address at, bool write, Tid tid);
    void ask_for(Fragment& fragment, Mapping& mapping, Address at, bool write, Tid tid);
    // Trapped pages (pager_trapped.cc).
    bool show_now(Fragment& fragment, Mapping& mapping, Address at);
    void install_trapped(const Piece& piece, const Install& action);
    TakeResult take_trapped(Mapping& mapping, Address at, bool keep);
    Task<void> hide_shown();
    [[nodiscard]] bool is_unfilled(Fragment& fragment, const Mapping& mapping, Address at) const;
    void note_unfilled(Fragment& fragment, Address at, bool write, Tid tid);
    void tell_unfilled(Fragment& fragment, Address at);
    Task<bool> wait_for_program(std::shared_ptr<Fragment> fragment, Address at, bool write);
    // Brings every page of the process that was touched elsewhere here.
    Task<void> collect(Fragment& fragment);
    Task<void> arrived(Fragment& fragment);
    void show_code(Fragment& fragment);
    static void show_files(Fragment& fragment);
    static void fill_gap(Fragment& fragment, const Mapping& m, Range gap);
    void show_code_of_others(Fragment& fragment, const Mapping& mapping);
    void forget_forks(Fragment& fragment);
    // Runs what the core asked for, until it asks for nothing.
    void settle();
    void run(const Install& action);
    void run(const Unprotect& action);
    void run(const Take& action);
    void run(const FindTouched& action);
    void run(SendMessage& action);
    void run(const Wake& action);
    void run(const AcquireDone& action);
    void run(const Anchored& action);
    void run(const CollectDone& action);
    Task<void> take(Take action);
    bool take_early(const Take& action);
    [[nodiscard]] bool may_be_pinned(const Mapping& mapping, const Take& action) const;
    Task<Fragment::Taken> share_by_moving(uint64_t take, Piece piece);
    Task<void> remove(std::weak_ptr<Fragment> weak, Address at, PageRun run);
    // What lies beyond the end of a file (pager_absent.cc).
    void refuse_page(Fragment& fragment, const Mapping& mapping, Address at);
    void give_born(Fragment& fragment, const Mapping& mapping, Address at);
    [[nodiscard]] bool is_being_removed(const PageRun& run) const;
    Task<void> install_later(Install action);
    Task<bool> wait_for(uint64_t cookie, OneShot<bool>& done);
    bool add_runs(Fragment& fragment, Range range, std::vector<PageRun>& runs);
    Task<bool> acquire_runs(std::vector<PageRun> runs, Access access, uint64_t cookie, bool hold);
    bool make_present(Fragment& fragment, Address at);
    void arm_timer();
    void note_waiting(Tid tid);
    void note_arrival();
    void erase(ObjectId object);
    [[nodiscard]] uint64_t now() const;

    struct Place {
        Fragment* fragment;
        Address address;
        Mapping* mapping;
    };
    // Where the page is seen here; nothing if its mapping went away.
    std::vector<Place> places(PageKey key);
    std::vector<Piece> pieces(const PageRun& run);
    Result<void> ensure_registered(Fragment& fragment, Mapping& mapping);

    struct Shared {
        Fd memfd;
        uint64_t pages = 0;
        bool has_writers = false;
        bool may_lack_room = false;
        // At home, where others go on writing pages that it has lent: what they were.
        std::map<uint64_t, std::shared_ptr<const std::byte>> lent;
    };
    // Visits the part of the run that each mapping shows, on this node.
    template <class Visit>
    void for_each_view(const PageRun& run, Visit visit);
    void protect_views(const PageRun& run);
    void enable_views(const PageRun& run);
    void wake_views(const PageRun& run);
    void put_shared(PageKey first, std::span<const std::byte> bytes);
    [[nodiscard]] bool is_kept(ObjectId object, const Shared& o) const;
    void install_shared(const Install& action);
    std::vector<TakeResult> take_shared(const Take& action);
    // At home (pager_room.cc):
    Task<void> views_settled();
    Task<void> install_when_settled(Install action);
    [[nodiscard]] bool may_take_now(const Take& action) const;
    Task<void> take_when_settled(Take action);
    Task<std::vector<bool>> make_room(PageRun run);
    void refuse_shared(const Anchored& action);
    Task<void> remove_refusal(PageRun run);

    NodeId self_;
    Loop& loop_;
    PageDirectory* directory_;
    Send send_;
    PageAgent agent_;
    std::unordered_map<Fragment*, Watch> fragments_;
    std::vector<Action> actions_;
    bool settling_ = false;
    Loop::TimerId timer_ = 0;
    uint64_t timer_due_ = ~0ULL;
    uint64_t next_cookie_ = 1;
    std::unordered_map<uint64_t, OneShot<bool>*> waiting_;
    std::unordered_map<ObjectId, NodeId> births_;
    std::unordered_map<ObjectId, Shared> shared_;
    HotSets hot_;
    std::deque<std::pair<NodeId, Message>> read_ahead_;  // requests that can wait
    bool read_ahead_posted_ = false;
    std::function<uint64_t()> queued_bytes_;
    Signal moved_;
    bool alone_ = false;             // while settle() runs for a thread that is the last one here
    std::vector<PageRun> removing_;  // given up already
    uint64_t faults_ = 0;
    CodeFault code_fault_;
    AnyFault any_fault_;
    bool shared_is_home_ = false;  // all; else
    std::set<ObjectId> used_at_home_;
    AskProgram ask_program_;
    AskPinned ask_pinned_;
    bool probes_pins_ = false;
    std::unordered_map<Tid, PageKey> refused_;  // what each was told last not to be there
    int views_changing_ = 0;
    // Who waits for what only the program can provide, and whether to write.
    std::map<std::pair<Fragment*, Address>, std::pair<Tid, bool>> unfilled_;
    Signal filled_;
    // Code of the other node that was read here as data; text does not change.
    std::map<PageKey, std::shared_ptr<const std::byte>> code_read_;
    std::vector<std::pair<std::weak_ptr<Fragment>, Address>> shown_;
    std::unordered_set<Tid> faulting_;  // since the last page came
    uint64_t faulting_since_ = 0;       // the first of them
    uint64_t waited_ns_ = 0;
    struct Forking {
        int count = 0;               // forks that have begun and not ended
        std::vector<ObjectId> held;  // by the directory, until there is none
    };
    std::map<Fragment*, Forking> forking_;
    AsyncMutex code_lock_;  // held while code that was shown is hidden
};

template <class Visit>
void Pager::for_each_view(const PageRun& run, Visit visit) {
    uint64_t end = run.first + run.count;
    for (auto& [fragment, watch] : fragments_) {
        fragment->space.shared_views(run.object, [&](const Mapping& m) {
            uint64_t m_end = m.object_page + m.range.size() / page_size;
            if (m.object_page >= end || m_end <= run.first) return;
            uint64_t first = std::max(m.object_page, run.first);
            uint64_t last = std::min(m_end, end);
            Address at = m.range.begin + (first - m.object_page) * page_size;
            visit(*fragment, m, Range{at, at + (last - first) * page_size}, first);
        });
    }
}

}  // namespace gpr
