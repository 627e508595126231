#include "monitor/home/promises.h"

#include "monitor/home/delegations.h"
#include "monitor/home/lookups.h"

namespace gpr::home {

void Promises::put(wire::CallReply::Builder answer, FrameBuilder& frame) const {
    if (opened) opened->put(answer.initDelegation(), frame);
    if (known) known->put(answer.initLookup());
    if (!break_object) return;
    answer.setMovesBreak(true);
    answer.setBreakObject(*break_object);
}

}  // namespace gpr::home
