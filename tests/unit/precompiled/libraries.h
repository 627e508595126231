// Precompiled for unit tests.
#ifndef GPR_UNIT_LIBRARIES_PCH_H
#define GPR_UNIT_LIBRARIES_PCH_H

#include <doctest/doctest.h>

#include "base/precompiled/libraries.h"

#endif
