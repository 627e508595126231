// The list of robust futexes that the kernel walks when a thread ends: set_robust_list(2). It goes
// with the thread to the node where it runs.
#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "monitor/paging/pager.h"

namespace gpr {

inline constexpr uint64_t robust_head_size = 24;  // struct robust_list_head

// The address of its head, as this node's kernel knows it; 0: none, or the thread is gone.
// tid: as this supervisor names it.
inline uint64_t robust_list_of(pid_t tid) {
    uint64_t head = 0;
    size_t length = 0;
    return syscall(SYS_get_robust_list, tid, &head, &length) == 0 ? head : 0;
}

// What the kernel looks at and writes in that list when the thread is past faulting: what is
// missing or write-protected then is skipped in silence, so all of it has to be here. head_at: 0
// for none.
Task<std::vector<Range>> robust_words(Pager& pager, std::shared_ptr<Fragment> fragment,
                                      uint64_t head_at);

}  // namespace gpr
