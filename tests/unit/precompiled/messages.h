// Precompiled for unit tests of what talks to other nodes.
#ifndef GPR_UNIT_MESSAGES_PCH_H
#define GPR_UNIT_MESSAGES_PCH_H

#include <doctest/doctest.h>

#include "transport/precompiled/messages.h"

#endif
