// A world of nodes with memory, threads, devices and a network, around the real coherence core.
//
// Each page holds one counter. Every write adds one, and an oracle adds one beside: whoever reads
// a page must find the oracle's value at that moment, so a lost write, a stale copy or two writers
// cannot pass. Time is simulated; everything is decided by the seed.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "mm/directory_log.h"
#include "mm/page_agent.h"
#include "mm/page_directory.h"
#include "sim_random.h"

namespace gpr::sim {

struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Settings {
    unsigned nodes = 2;
    uint64_t seed = 1;
    bool verbose = false;
    size_t record_bytes = 0;  // records its directory in so much memory, and replays it in the end
};

// How this seed's world behaves.
struct Shape {
    unsigned objects, pages, threads, instructions, most_pages;
    uint64_t net_us, net_jitter_us;
    unsigned write_percent, drop_percent, cross_percent, progress_percent, far_wake_percent;
    unsigned walk_percent;  // instructions that go on with the thread's walk over an object
    bool devices, acquires, collects, copies, forks;
};

struct Frame {
    uint64_t value = 0;
    bool writable = false;
    bool pinned = false;
};

struct Need {
    PageKey key;
    Access access;
};

struct Thread {
    Tid tid = 0;
    unsigned node = 0;
    enum class State { running, blocked, moving, finished } state = State::running;
    std::vector<Need> needs;
    PageKey blocked_on;
    PageKey walk;  // the next page, while walk_left > 0
    int64_t walk_stride = 1;
    Access walk_access = Access::read;
    unsigned walk_left = 0;
    uint64_t fault_number = 0;
    unsigned left = 0;     // instructions
    uint64_t started = 0;  // of the current instruction
    uint64_t frozen_at = 0;
};

struct Drop {
    uint64_t id;
    unsigned origin;
    ObjectId object;
    uint64_t first, count;
};

using Applied = std::vector<uint32_t>;  // drops known, by origin

struct Envelope {
    unsigned from;
    bool to_directory;
    Message message;
    Applied needs;
};

struct Node {
    std::unique_ptr<PageAgent> agent;
    std::map<PageKey, Frame> memory;
    std::map<PageKey, uint64_t> generation;  // which drops it went through, order ignored
    std::map<ObjectId, bool> registered;     // with userfaultfd; before, its birth node runs free
    Applied applied;
    std::vector<Envelope> held;  // their metadata is not here yet
    uint64_t timer_at = UINT64_MAX;
    uint64_t next_cookie = 1;
    bool acquiring = false;
};

struct Fork {
    std::map<PageKey, uint64_t>
        wanted;  // pages that have been written, and the generation that was in
    std::set<PageKey> arriving;
    bool copying = false;
};

struct Totals {
    uint64_t events = 0, instructions = 0, messages = 0, pins = 0, drops = 0, pushes = 0;
    uint64_t acquires = 0, collects = 0, anchored = 0, longest_us = 0, longest_pinned_us = 0;
    uint64_t faults = 0, percent_of_limit = 0, markers_kept = 0, markers_reached = 0,
             rights_given = 0, forks = 0, copies = 0, replayed = 0, overwritten = 0;
};

class World {
public:
    explicit World(const Settings& settings);

    // Throws Failure when something is wrong.
    Totals run();

private:
    // --- sim_world.cc: time, network, glue ---
    void after(uint64_t delay_ns, std::function<void()> work);
    void step();
    void log(const std::string& line);
    [[noreturn]] void fail(const std::string& why);
    void send(unsigned from, unsigned to, bool to_directory, Message message);
    void deliver(unsigned to, Envelope envelope);
    void drain(unsigned node);
    void drain_directory();
    void perform(unsigned node, Action& action);
    void install(unsigned node, const Install& action);
    void unprotect(unsigned node, const Unprotect& action);
    void find_touched(unsigned node, const FindTouched& action);
    void take(unsigned node, const Take& action);
    void arm_timer(unsigned node);
    void wake(unsigned node, PageKey key);
    void finish();
    void replay_record();

    // --- sim_program.cc: threads, devices, the supervisor's own needs ---
    void start_instruction(Thread& t);
    void attempt(Thread& t);
    void fault(Thread& t, Need need);
    void complete(Thread& t);
    void cross(Thread& t, unsigned to, bool push);
    void drop(unsigned node);
    void apply_drop(unsigned node, const Drop& drop);
    void pin_something();
    void device_writes(unsigned node, PageKey key, uint64_t generation, unsigned left);
    void acquire_something();
    void acquired(unsigned node, const AcquireDone& done);
    void use_acquired(unsigned node, const std::vector<PageRun>& runs, Access access,
                      const std::vector<uint64_t>& generations);
    void collect_something();
    void copy_memory();
    bool walk_on(Thread& t);
    void disturb();

    // --- sim_forks.cc ---
    void fork_of(ObjectId object);
    void collect_when_all_is_sent(ObjectId object);
    void fork_collected(uint64_t cookie);
    void copy_when_all_is_here(ObjectId object);
    void check_fork(ObjectId object);
    void check_copies();
    void copy_of(ObjectId object);
    void copy_when_quiet(ObjectId object);
    void copy_object(ObjectId from);
    [[nodiscard]] bool all_is_heard(ObjectId object) const;
    void go_on_later(Thread& t);
    void note_message(const Message& message, int change);

    // --- memory ---
    Frame* frame(unsigned node, PageKey key);
    bool usable(unsigned node, Need need);
    void touch(unsigned node, Need need);
    uint64_t& truth(unsigned node, PageKey key);
    void check_page(PageKey key);
    PageKey random_page();
    [[nodiscard]] bool busy() const { return unfinished_ > 0; }

    struct Event {
        uint64_t at, number;
        std::function<void()> work;
        bool operator<(const Event& o) const { return at != o.at ? at > o.at : number > o.number; }
    };

    Settings settings_;
    Random random_;
    Shape shape_{};
    Totals totals_;
    uint64_t limit_us_ = 0;  // for one instruction
    uint64_t now_ = 1'000'000;
    uint64_t next_event_ = 0;
    std::priority_queue<Event> events_;
    std::vector<Node> nodes_;
    PageDirectory directory_;
    std::vector<std::byte> record_;
    std::unique_ptr<DirectoryLog> log_;
    std::vector<std::unique_ptr<Thread>> threads_;
    unsigned unfinished_ = 0;
    std::map<ObjectId, unsigned> births_;
    std::map<std::pair<PageKey, uint64_t>, uint64_t> truth_;
    std::map<std::pair<unsigned, uint64_t>,
             std::pair<std::vector<PageRun>, std::pair<Access, bool>>>
        acquires_;  // by node and cookie: runs, access, hold
    std::map<std::tuple<unsigned, unsigned, unsigned>, uint64_t> stream_free_;  // FIFO of a stream
    unsigned collects_open_ = 0;
    std::map<ObjectId, Fork> forks_;
    bool frozen_ = false;                // no thread makes a step
    std::map<ObjectId, int> under_way_;  // messages about pages, but for requests
    uint64_t next_drop_ = 1;
    std::vector<Action> scratch_;
};

std::string to_string(PageKey key);
std::string describe(const Message& message);

}  // namespace gpr::sim
