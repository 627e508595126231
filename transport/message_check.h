// Cap'n Proto validates lazily, by throwing from accessors. This walks a whole message once against
// the schema, so that nothing behind the edge has to expect an exception.
#pragma once

#include <capnp/any.h>

#include <cstddef>

#include "base/result.h"

namespace gpr {

// True if every pointer the schema of wire::Frame can reach has the type it should and lies within
// the message, and walking it costs no more than the message's own size: many pointers to one big
// object are refused. Pointers the schema does not know are left alone: nobody reads them.
Result<> check_message(capnp::AnyPointer::Reader root, size_t message_words);

}  // namespace gpr
