// Page faults of the program's threads: asks the page agent for the page, or passes the fault to
// whoever moves the thread to where the page is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>

#include "base/address.h"
#include "base/latency.h"
#include "mm/page_protocol.h"
#include "monitor/paging/part.h"

namespace gpr::paging {

class Faults {
public:
    Faults(Core& core, Pager& pager) : core_(core), pager_(pager) {}

    // Called for a fault on memory that is used elsewhere only, such as trapped code; moves the
    // thread, or calls serve().
    using CodeFault = std::function<void(Fragment&, Address at, bool write, Tid tid)>;
    void on_code_fault(CodeFault handler) { code_fault_ = std::move(handler); }
    // Called for every other fault; if it returns true, the handler above is called as well.
    using AnyFault = std::function<bool(Fragment&, Address at, bool write, Tid tid)>;
    void on_any_fault(AnyFault asks) { any_fault_ = std::move(asks); }
    // A fault where the list has no mapping. The handler returns whether it wakes the thread.
    using UnknownFault = std::function<bool(Fragment&, Address at)>;
    void on_unknown_fault(UnknownFault handler) { unknown_fault_ = std::move(handler); }

    // Handles all events of the fragment's userfaultfd.
    void read(Fragment& fragment);
    // Fetches the page. Trapped code becomes readable as data for a moment.
    void serve(Fragment& fragment, Address at, bool write, Tid tid);
    // The process is about to be killed, and must not see wrong memory meanwhile.
    void give_up(Fragment& fragment);
    // A page has arrived.
    void note_arrival();
    // The thread no longer waits here.
    void forget(Tid tid) { faulting_.erase(tid); }

    // The number of threads that fault and wait: at least so many cannot run.
    [[nodiscard]] size_t faulting() const { return faulting_.size(); }
    [[nodiscard]] uint64_t count() const { return faults_; }
    [[nodiscard]] uint64_t waited_ns() const { return waited_ns_; }
    [[nodiscard]] bool waits(Tid tid) const { return faulting_.contains(tid); }
    // Times from a thread's fault until the next page arrived, whether it was the page it needs.
    [[nodiscard]] const LatencyHistogram& waits() const { return waits_; }

private:
    void on_fault(Fragment& fragment, Address at, bool write, Tid tid);
    void ask_for(Fragment& fragment, Mapping& m, Address at, bool write, Tid tid);
    void note_waiting(Tid tid);

    Core& core_;
    Pager& pager_;
    CodeFault code_fault_;
    AnyFault any_fault_;
    UnknownFault unknown_fault_;
    uint64_t faults_ = 0;
    std::unordered_map<Tid, uint64_t> faulting_;  // since when; emptied when a page arrives
    uint64_t faulting_since_ = 0;                 // when the first of them faulted
    uint64_t waited_ns_ = 0;
    LatencyHistogram waits_;
};

}  // namespace gpr::paging
