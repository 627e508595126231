// Precompiled for the command: the libraries that it uses besides those of all folders.
#ifndef GPR_TOOLS_LIBRARIES_PCH_H
#define GPR_TOOLS_LIBRARIES_PCH_H

#include <nlohmann/json.hpp>

#include "base/precompiled/libraries.h"

#endif
