// Cap'n Proto validates lazily, by throwing from accessors. This checks a whole message against the
// schema once, so that no code after it has to expect an exception.
#pragma once

#include <capnp/any.h>

#include <cstddef>

#include "base/result.h"

namespace gpr {

// Succeeds if every pointer that the schema of wire::Frame can reach has the right type and lies
// within the message, and if walking it costs no more than the message's own size: many pointers to
// one big object are refused. Pointers that the schema does not know are ignored, because nothing
// reads them.
Result<> check_message(capnp::AnyPointer::Reader root, size_t message_words);

}  // namespace gpr
