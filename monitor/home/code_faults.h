// Threads at home that fault on missing pages: those whose code is missing leave for the node that
// has it; the others get the page.
#pragma once

#include <sys/types.h>

#include <memory>

#include "base/address.h"
#include "mm/page_protocol.h"
#include "monitor/home/part.h"

namespace gpr {
struct Mapping;
}  // namespace gpr

namespace gpr::home {

class CodeFaults {
public:
    explicit CodeFaults(Home& home) : home_(home) {}

    enum class Why { code, pinned, gravity };
    bool may_leave_at_fault(Fragment& fragment, Address at, bool write, pid_t tid);
    Task<void> code_fault(std::shared_ptr<Fragment> fragment, Address at, bool write, pid_t tid);
    // pinned_at: the node with the device that has pinned the page.
    Task<void> leave(std::shared_ptr<Fragment> fragment, HomeThread& thread, Address at, bool write,
                     Why why, NodeId pinned_at = directory_node);

private:
    [[nodiscard]] NodeId where_to(const HomeThread& thread, const Mapping* missing, Why why) const;
    void refuse_loan(const Fragment& fragment, Address at);

    Home& home_;
};

}  // namespace gpr::home
