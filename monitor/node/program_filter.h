// The program's own seccomp filters. Its threads have them natively on every node, on top of gpr's
// own filter, so that each call is judged where it is made, with the program's arguments.
#pragma once

#include <linux/filter.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "monitor/paging/pager.h"
#include "monitor/tracee/stub_thread.h"
#include "transport/wire.h"

namespace gpr {

struct ProgramFilter {
    uint32_t flags = 0;  // flags of seccomp(2) that concern the filter itself
    std::vector<sock_filter> code;
};

using FilterList = std::vector<std::shared_ptr<const ProgramFilter>>;

// A call that installs a filter for the caller.
struct FilterCall {
    std::shared_ptr<const ProgramFilter> filter;  // null: the kernel will refuse the call as it is
    bool strict = false;                          // SECCOMP_MODE_STRICT
    bool all_threads = false;                     // SECCOMP_FILTER_FLAG_TSYNC
    bool tells_no_thread = false;                 // SECCOMP_FILTER_FLAG_TSYNC_ESRCH

    // The kernel's error if `thread` has filters that the caller does not have.
    [[nodiscard]] int64_t refusal(pid_t thread) const;
};

bool installs_filter(uint64_t number, const uint64_t* args);
bool asks_for_seccomp_mode(uint64_t number, const uint64_t* args);

// Whether it asks for a listener, which the kernel refuses beside ours.
bool asks_for_listener(uint64_t number, const uint64_t* args);

// Reads the caller's memory. False if there is none.
using ReadCaller = std::function<Task<bool>(Address, std::span<std::byte>)>;
Task<FilterCall> read_filter_call(ReadCaller read, uint64_t number, std::array<uint64_t, 6> args);
Task<FilterCall> read_filter_call(Pager& pager, std::shared_ptr<Fragment> fragment, uint64_t number,
                                  std::array<uint64_t, 6> args);

// With a stop (SECCOMP_RET_TRACE) for calls that only gpr's code should make: at rest, a program
// can map code of its own where the prologue expects gpr's, so that each of them is looked at.
inline constexpr uint16_t gpr_call_mark = 0x4773;
// What the kernel gets: the filter behind the prologue. ours: the answer to gpr's own calls.
std::vector<sock_filter> with_prologue(const ProgramFilter& filter, uint32_t ours);

// Installs the filter for a thread, or for its whole thread group. Returns the kernel's result.
Task<int64_t> install_filter(StubThread& stub, const ProgramFilter& filter, bool all_threads);

// At an acceptor a filter does not kill, because only home knows all threads of the program. The
// thread gets SIGSYS instead, with one of these in si_errno.
enum class FilterDeath : uint16_t {
    of_process = 0x4770,
    of_thread = 0x4771,
    by_strict_mode = 0x4772,
};
ProgramFilter for_acceptor(const ProgramFilter& filter);
std::optional<FilterDeath> filter_death(const siginfo_t& info);

void filters_to_wire(std::span<const std::shared_ptr<const ProgramFilter>> filters,
                     capnp::List<wire::SeccompFilter>::Builder out);
// Skips entries that cannot be a filter.
FilterList filters_from_wire(capnp::List<wire::SeccompFilter>::Reader in);

}  // namespace gpr
