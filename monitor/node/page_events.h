// What a trace tells of pages: which threads wait for one, and what has come, for whom, and when.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <unordered_map>

#include "bpf/call_trace_layout.h"
#include "monitor/paging/page_observer.h"

namespace gpr {

class EventSource;
class Pager;

class PageEvents final : public paging::PageObserver {
public:
    // is_of_program: not a helper of gpr's.
    PageEvents(EventSource& source, Pager& pager,
               std::function<bool(pid_t pid, pid_t tid)> is_of_program);
    ~PageEvents() override { end(); }
    PageEvents(const PageEvents&) = delete;
    PageEvents& operator=(const PageEvents&) = delete;

    // If the order asks for pages.
    void begin(const gpr_trace_order& order);
    void end();

    void on_miss(const Fragment& fragment, Address page, PageKey key, Access access,
                 Tid tid) override;
    void on_pages(const PageRun& run, Presence presence, ContentKind content) override;
    void on_present(PageKey key) override;

private:
    struct Wait {
        pid_t pid = 0;
        Address page;
        PageKey key;
        Access access = Access::read;
        uint64_t since_ns = 0;
    };

    EventSource& source_;
    Pager& pager_;
    std::function<bool(pid_t, pid_t)> is_of_program_;
    std::unordered_map<Tid, Wait> waits_;  // one for each thread, and of threads that have gone
};

}  // namespace gpr
