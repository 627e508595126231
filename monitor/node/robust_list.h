// The list of robust futexes that the kernel walks when a thread ends: set_robust_list(2). The node
// where the thread runs has the list.
#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "monitor/node/futex_wake.h"
#include "monitor/paging/pager.h"

namespace gpr {

inline constexpr uint64_t robust_head_size = 24;  // struct robust_list_head

// The address of the list's head as this node's kernel knows it; 0 if there is none or the thread
// is gone. tid: as this supervisor sees it.
inline uint64_t robust_list_of(pid_t tid) {
    uint64_t head = 0;
    size_t length = 0;
    return syscall(SYS_get_robust_list, tid, &head, &length) == 0 ? head : 0;
}

struct RobustWords {
    // What the kernel reads and writes at the thread's end. It can no longer fault then and
    // silently skips what is missing or write-protected, so all of it must be here.
    std::vector<Range> all;
    // Futexes that the thread owned. The kernel wakes one waiter of this node; others must be told.
    std::vector<uint64_t> locks;
};

// head_at: 0 for none.
Task<RobustWords> robust_words(Pager& pager, std::shared_ptr<Fragment> fragment, uint64_t head_at);

// The wake for such a lock; the kernel makes it without FUTEX_PRIVATE_FLAG.
inline FutexWakeCall handing_on(uint64_t lock) { return {lock, 1, 0xffffffff, true}; }

}  // namespace gpr
