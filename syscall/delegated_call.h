// What a call means for files that home has delegated to an acceptor (monitor/home/delegations.h).
// Both nodes decide by this, so that they agree.
#pragma once

#include <cstdint>

#include "syscall/details.h"

namespace gpr {

// In the place of an offset: the file's own has not changed.
inline constexpr uint64_t offset_is_unchanged = UINT64_MAX;
// The program has closed the descriptor: home shall do so.
inline constexpr uint64_t file_is_closed = UINT64_MAX - 1;

// With ioctl and fcntl resolved: `ioctl` only if a regular file fails with ENOTTY, whatever it is.
OnDelegated on_delegated(uint32_t number, const uint64_t* args);

// Whether one of its descriptors is this.
bool uses_descriptor(uint32_t number, const uint64_t* args, int descriptor);

// Whether this call, made at home, needs a file back that is delegated under this descriptor.
bool needs_back(uint32_t number, const uint64_t* args, int descriptor);

}  // namespace gpr
