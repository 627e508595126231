// Text in messages.
#pragma once

#include <string>
#include <vector>

#include "transport/wire.h"

namespace gpr {

// Makes a peer's text fit for our user's terminal: without control characters, of bounded length.
std::string printable(const std::string& text);

// As many as the list has room for.
void write_texts(const std::vector<std::string>& texts, capnp::List<capnp::Text>::Builder to);
std::vector<std::string> read_texts(capnp::List<capnp::Text>::Reader from);

}  // namespace gpr
