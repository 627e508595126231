// Threads of the program that stand at a page: who asks the page agent for it, or hands them to
// whoever moves threads to where the page is.
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

    // Faults on trapped code go to this handler, which moves the thread, or calls serve().
    using CodeFault = std::function<void(Fragment&, Address at, bool write, Tid tid)>;
    void on_code_fault(CodeFault handler) { code_fault_ = std::move(handler); }
    // Faults elsewhere go there, too, if this says so.
    using AnyFault = std::function<bool(Fragment&, Address at, bool write, Tid tid)>;
    void on_any_fault(AnyFault asks) { any_fault_ = std::move(asks); }

    // All that the fragment's userfaultfd has to tell.
    void read(Fragment& fragment);
    // Brings the page here. Data of a trapped one can be read for a moment.
    void serve(Fragment& fragment, Address at, bool write, Tid tid);
    // The process will be ended, and must not see memory that is not what it was.
    void give_up(Fragment& fragment);
    // Some page came.
    void note_arrival();
    // The thread does not wait here any more.
    void forget(Tid tid) { faulting_.erase(tid); }

    // Threads that stand at a missing page: at least as many of them cannot run.
    [[nodiscard]] size_t faulting() const { return faulting_.size(); }
    [[nodiscard]] uint64_t count() const { return faults_; }
    [[nodiscard]] uint64_t waited_ns() const { return waited_ns_; }
    [[nodiscard]] bool waits(Tid tid) const { return faulting_.contains(tid); }
    // From when a thread stood at a missing page until some page came.
    [[nodiscard]] const LatencyHistogram& waits() const { return waits_; }

private:
    void on_fault(Fragment& fragment, Address at, bool write, Tid tid);
    void ask_for(Fragment& fragment, Mapping& m, Address at, bool write, Tid tid);
    void note_waiting(Tid tid);

    Core& core_;
    Pager& pager_;
    CodeFault code_fault_;
    AnyFault any_fault_;
    uint64_t faults_ = 0;
    std::unordered_map<Tid, uint64_t> faulting_;  // since the last page came; since when
    uint64_t faulting_since_ = 0;                 // the first of them
    uint64_t waited_ns_ = 0;
    LatencyHistogram waits_;
};

}  // namespace gpr::paging
