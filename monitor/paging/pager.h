// Connects the coherence core to the programs' memory: faults come in, page moves go out. There is
// one on each node. This class routes events, and what the core asks for, to the parts; each part
// is one concern with its own state.
#pragma once

#include <cstdint>

#include "mm/page_actions.h"
#include "mm/page_directory.h"
#include "mm/page_protocol.h"
#include "monitor/paging/absent_pages.h"
#include "monitor/paging/core.h"
#include "monitor/paging/faults.h"
#include "monitor/paging/forks.h"
#include "monitor/paging/fragment.h"
#include "monitor/paging/hot_pages.h"
#include "monitor/paging/installs.h"
#include "monitor/paging/messages.h"
#include "monitor/paging/objects.h"
#include "monitor/paging/pager_stats.h"
#include "monitor/paging/pinned_pages.h"
#include "monitor/paging/program_memory.h"
#include "monitor/paging/range_locks.h"
#include "monitor/paging/removals.h"
#include "monitor/paging/shared_objects.h"
#include "monitor/paging/shared_room.h"
#include "monitor/paging/shared_views.h"
#include "monitor/paging/supply.h"
#include "monitor/paging/takes.h"
#include "monitor/paging/traffic.h"
#include "monitor/paging/trapped_text.h"
#include "monitor/paging/unfilled_pages.h"
#include "transport/loop.h"

namespace gpr {

class Pager {
public:
    // send: sends a message to another node. directory: on node 0 only.
    using Send = paging::Messages::Send;
    Pager(NodeId self, Loop& loop, PageDirectory* directory, Send send);
    Pager(const Pager&) = delete;
    Pager& operator=(const Pager&) = delete;

    // A fragment must be removed before it is destroyed.
    void add_fragment(Fragment& fragment);
    void remove_fragment(Fragment& fragment);

    void on_message(NodeId from, Message message);
    void on_drained() { messages.on_drained(); }
    void on_progress(Tid tid);
    void on_past_progress(Tid tid);  // reported some time after it happened
    void on_thread_gone(Tid tid);
    void on_thread_end(Tid tid);  // the thread has ended on all nodes
    // Passes what the core asks for to the part that does it.
    void run(Action& action);

    [[nodiscard]] PagerStats stats() const;
    [[nodiscard]] Presence presence(PageKey key) const { return core.agent.presence(key); }

    paging::Core core;
    // Objects and pages that arrive and leave.
    paging::Objects objects{core, *this};
    paging::Messages messages;
    paging::Faults faults{core, *this};
    paging::Installs installs{core, *this};
    paging::Takes takes{core, *this};
    paging::Removals removals{core, *this};
    paging::RangeLocks ranges{core};
    // What the supervisor itself needs.
    paging::Supply supply{core, *this};
    paging::ProgramMemory memory{core, *this};
    paging::HotPages hot{core, *this};
    paging::Forks forks{core, *this};
    // Special kinds of pages.
    paging::SharedObjects shared{core, *this};
    paging::SharedViews views{core, *this};
    paging::SharedRoom room{core, *this};
    paging::TrappedText trapped{core, *this};
    paging::UnfilledPages unfilled{core, *this};
    paging::PinnedPages pinned{core, *this};
    paging::AbsentPages absent{core, *this};
    // Counts only.
    paging::Traffic traffic;
};

}  // namespace gpr
