// Usage as messages carry it.
#pragma once

#include <optional>

#include "monitor/node/usage.h"
#include "monitor/tracee/thread_state.h"
#include "transport/gpr.capnp.h"

namespace gpr {

inline void usage_to_wire(const Usage& used, wire::Usage::Builder to) {
    to.setTotalNs(used.total_ns);
    to.setUserNs(used.user_ns);
    to.setMinorFaults(used.minor_faults);
    to.setMajorFaults(used.major_faults);
    to.setPeak(used.peak_bytes);
    to.setAnonymous(used.resident.anonymous);
    to.setFile(used.resident.file);
    to.setShared(used.resident.shared);
}

inline Usage usage_from_wire(wire::Usage::Reader from) {
    return {from.getTotalNs(),     from.getUserNs(),
            from.getMinorFaults(), from.getMajorFaults(),
            from.getPeak(),        {from.getAnonymous(), from.getFile(), from.getShared()}};
}

// The answer to a question; `state` is absent if it was not asked for or the thread is not there.
struct ToldUsage {
    Usage used;
    std::optional<ThreadState> state;
};

inline ToldUsage told_usage(wire::UsageAnswer::Reader answer) {
    ToldUsage told{usage_from_wire(answer.getUsed()), std::nullopt};
    if (char letter = static_cast<char>(answer.getState().getLetter()); letter != 0) {
        told.state = ThreadState{letter, answer.getState().getWaitsIn()};
    }
    return told;
}

}  // namespace gpr
