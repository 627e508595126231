// What a seccomp filter says about a call, for supervisors that ask it themselves.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstdint>
#include <span>

namespace gpr {

// SECCOMP_RET_* with its data, as the kernel would find it. The program must be one of
// FilterProgram's: no other instructions are known.
uint32_t filter_verdict(std::span<const sock_filter> program, const seccomp_data& call);

}  // namespace gpr
