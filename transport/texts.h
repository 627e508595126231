// Texts in messages.
#pragma once

#include <string>
#include <vector>

#include "transport/wire.h"

namespace gpr {

// Text of a peer, for our user's terminal: control characters and length cut.
std::string printable(const std::string& text);

// As many as the list has room for.
void write_texts(const std::vector<std::string>& texts, capnp::List<capnp::Text>::Builder to);
std::vector<std::string> read_texts(capnp::List<capnp::Text>::Reader from);

}  // namespace gpr
