// Precompiled for what only the initiator runs: everything that belongs to a session there.
#ifndef GPR_SESSION_PCH_H
#define GPR_SESSION_PCH_H

#include "monitor/home/home.h"
#include "transport/precompiled/messages.h"

#endif
