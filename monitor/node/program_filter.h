// The program's own seccomp filters. On every node its threads have them natively, above gpr's own
// filter, so that each call is judged where it is made, with the program's arguments.
#pragma once

#include <linux/filter.h>

#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "monitor/paging/pager.h"
#include "monitor/tracee/stub_thread.h"
#include "transport/wire.h"

namespace gpr {

struct ProgramFilter {
    uint32_t flags = 0;  // of seccomp(2), those that concern the filter itself
    std::vector<sock_filter> code;
};

using FilterList = std::vector<std::shared_ptr<const ProgramFilter>>;

// A call that puts the caller under a filter.
struct FilterCall {
    std::shared_ptr<const ProgramFilter> filter;  // none: the kernel is to refuse the call as it is
    bool strict = false;                          // the mode with four calls
    bool all_threads = false;                     // SECCOMP_FILTER_FLAG_TSYNC
    bool tells_no_thread = false;                 // SECCOMP_FILTER_FLAG_TSYNC_ESRCH

    // What the kernel says if `thread` is under filters that the caller is not under.
    [[nodiscard]] int64_t refusal(pid_t thread) const;
};

bool installs_filter(uint64_t number, const uint64_t* args);
bool asks_for_seccomp_mode(uint64_t number, const uint64_t* args);

Task<FilterCall> read_filter_call(Pager& pager, std::shared_ptr<Fragment> fragment, uint64_t number,
                                  std::array<uint64_t, 6> args);

// Puts a thread under the filter, or all of its thread group. The kernel's result.
Task<int64_t> install_filter(StubThread& stub, const ProgramFilter& filter, bool all_threads);

// At an acceptor a filter does not kill: which threads the program has is known at home. The thread
// gets SIGSYS instead, with one of these in si_errno.
enum class FilterDeath : uint16_t {
    of_process = 0x4770,
    of_thread = 0x4771,
    by_strict_mode = 0x4772,
};
ProgramFilter for_acceptor(const ProgramFilter& filter);
std::optional<FilterDeath> filter_death(const siginfo_t& info);

void filters_to_wire(std::span<const std::shared_ptr<const ProgramFilter>> filters,
                     capnp::List<wire::SeccompFilter>::Builder out);
// What cannot be a filter is left out.
FilterList filters_from_wire(capnp::List<wire::SeccompFilter>::Reader in);

}  // namespace gpr
