// Precompiled for folders most of whose files talk to other nodes: the libraries, and what Cap'n
// Proto makes of our messages.
#ifndef GPR_MESSAGES_PCH_H
#define GPR_MESSAGES_PCH_H

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <liburing.h>

#include "address_space.capnp.h"
#include "base/precompiled/libraries.h"
#include "counts.capnp.h"
#include "files.capnp.h"
#include "gpr.capnp.h"
#include "handshake.capnp.h"
#include "inventory.capnp.h"

#endif
