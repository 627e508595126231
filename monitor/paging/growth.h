// Mappings that grow when they are touched below their start: MAP_GROWSDOWN and the main stack. No
// kernel knows that of the first, because both nodes must have it; what it makes of such a touch is
// a SIGSEGV. Of the main stack all that it may grow to is mapped at once, since a kernel touches it
// for the program, on either node. How much of that was used is found out when somebody wants to
// know, and calls that would find the rest free find it free.
#pragma once

#include <signal.h>

#include <optional>
#include <tl/expected.hpp>

#include "mm/address_space.h"
#include "monitor/tracee/signal_action.h"

namespace gpr {

// What is to be mapped for a thread that got this signal, without an object; nothing if the signal
// is the program's.
std::optional<Mapping> growth_for(AddressSpace& space, const siginfo_t& info);

// All that mprotect with PROT_GROWSDOWN or PROT_GROWSUP is about, or the errno.
[[nodiscard]] bool protects_growing(uint64_t number, const uint64_t* args);
tl::expected<Range, int> growing_range(AddressSpace& space, const uint64_t* args);
// What is one mapping that grows, to the program, of which this one is a part.
std::optional<Range> growing_run(const AddressSpace& space, Address at);

// The main stack with what is there to grow into; nothing if it has been unmapped.
std::optional<Range> main_stack(const AddressSpace& space);
// How far down it may get. used: how far it got; limit: of its size in bytes.
Address stack_floor(const AddressSpace& space, Range stack, Address used, uint64_t limit);
// What of the stack must go before something is mapped in `wanted`, where it was not used yet.
Range stack_in_the_way(Range stack, Address used, Range wanted);
// Where else the main stack may grow to depends on what is mapped in the range.
[[nodiscard]] bool concerns_stack(const AddressSpace& space, Range range);
// The same of a call: of what it changes, and of where it places something.
[[nodiscard]] bool concerns_stack(const AddressSpace& space, uint64_t number, const uint64_t* args);
// Where the call wants something to be placed.
Range fixed_place(uint64_t number, const uint64_t* args);

// A fault while its signal is blocked or ignored makes the kernel take back the action and unblock
// the signal (force_sig). Where the fault was ours, both are to be as before: what is known of
// that.
struct FaultAction {
    SignalAction action;
    std::optional<bool> blocked;
};
[[nodiscard]] bool is_fault_signal(int signal);
// What is to be put back: the action, if it is not the kernel's by now, and whether to block.
struct FaultRepair {
    bool action = false;
    bool block = false;
};
FaultRepair repair_after_fault(const FaultAction& before, uint64_t caught_now);

// What the kernel says of a page beyond the end of a file.
siginfo_t end_of_file_info(const siginfo_t& fault);

}  // namespace gpr
