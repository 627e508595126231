// The generated message types, gpr::wire. Include this and not the generated header, which does not
// compile at our warning level.
#pragma once

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "transport/gpr.capnp.h"
#pragma GCC diagnostic pop
