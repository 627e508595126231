// Mappings that grow when the address below them is touched: MAP_GROWSDOWN, and the main stack. The
// kernel does not know that the former grow, because every node must know of the growth; a touch
// below raises SIGSEGV, which is intercepted. The main stack is mapped in full up to its limit,
// because each kernel itself touches it for the program. How much of it is in use is determined
// when needed, and calls that would find the rest unmapped natively find it unmapped.
#pragma once

#include <signal.h>

#include <optional>
#include <tl/expected.hpp>

#include "mm/address_space.h"
#include "monitor/tracee/signal_action.h"

namespace gpr {

// The mapping to add (without an object) for a thread that got this signal; nullopt if the signal
// is the program's.
std::optional<Mapping> growth_for(AddressSpace& space, const siginfo_t& info);

// Whether this is mprotect with PROT_GROWSDOWN or PROT_GROWSUP, and the range that it changes, or
// the errno.
[[nodiscard]] bool protects_growing(uint64_t number, const uint64_t* args);
tl::expected<Range, int> growing_range(AddressSpace& space, const uint64_t* args);
// The whole range that is one growing mapping to the program and contains `at`.
std::optional<Range> growing_run(const AddressSpace& space, Address at);

// The main stack including the room to grow; nullopt if it has been unmapped.
std::optional<Range> main_stack(const AddressSpace& space);
// The lowest address that it may grow to. used: how far down it is in use; limit: its maximal size.
Address stack_floor(const AddressSpace& space, Range stack, Address used, uint64_t limit);
// The unused part of the stack to unmap before something is mapped at `wanted`.
Range stack_in_the_way(Range stack, Address used, Range wanted);
// Whether a change of the mappings in the range may change how far the main stack can grow.
[[nodiscard]] bool concerns_stack(const AddressSpace& space, Range range);
// The same for a call: for the range that it changes, and for its destination.
[[nodiscard]] bool concerns_stack(const AddressSpace& space, uint64_t number, const uint64_t* args);
// The fixed address range that the call maps, if any.
Range fixed_place(uint64_t number, const uint64_t* args);

// A fault whose signal is blocked or ignored makes the kernel reset the handler and unblock the
// signal (force_sig). If the fault was ours, both have to be restored. This is what they were.
struct FaultAction {
    SignalAction action;
    std::optional<bool> blocked;
};
[[nodiscard]] bool is_fault_signal(int signal);
// What to restore: the disposition, if the kernel has reset it, and whether to block the signal.
struct FaultRepair {
    bool action = false;
    bool block = false;
};
FaultRepair repair_after_fault(const FaultAction& before, uint64_t caught_now);

// The siginfo of a touch beyond the end of a file.
siginfo_t end_of_file_info(const siginfo_t& fault);

}  // namespace gpr
