// A signal as messages carry it: the kernel's siginfo_t.
#pragma once

#include <capnp/blob.h>
#include <signal.h>

#include <cstring>
#include <optional>

#include "monitor/tracee/signal_action.h"

namespace gpr {

// Set in the serial number of a signal from home if more signals are ready that its handler may not
// block. The handler does not start until home has sent the next one or said that there is none:
// signals that are ready together start their handlers in the kernel's order, the last one first.
inline constexpr uint32_t others_wait = 1U << 31;

// The mask of a handled signal, if home shall keep the one that it takes for the thread's. SIGKILL
// cannot be blocked.
inline constexpr uint64_t mask_is_kept = 1ULL << (SIGKILL - 1);

// Valid as long as `info` is.
inline capnp::Data::Reader signal_bytes(const siginfo_t& info) {
    return {reinterpret_cast<const uint8_t*>(&info), sizeof info};
}

// nullopt: a peer of ours never sends such a thing.
inline std::optional<siginfo_t> signal_of(capnp::Data::Reader bytes) {
    siginfo_t info;
    if (bytes.size() != sizeof info) return std::nullopt;
    std::memcpy(&info, bytes.begin(), sizeof info);
    if (info.si_signo < 1 || info.si_signo > 64) return std::nullopt;
    return info;
}

// nullopt: a peer of ours never sends such a thing.
template <class Reader>  // wire::SignalAction's
std::optional<SignalAction> action_of(Reader sent) {
    SignalAction action;
    auto bytes = sent.getAction();
    if (bytes.size() != sizeof action.kernel) return std::nullopt;
    if (sent.getSignal() < 1 || sent.getSignal() > 64) return std::nullopt;
    action.signal = static_cast<int>(sent.getSignal());
    std::memcpy(action.kernel.data(), bytes.begin(), sizeof action.kernel);
    return action;
}

}  // namespace gpr
