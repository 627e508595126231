// Text in messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "transport/wire.h"

namespace gpr {

// Makes a peer's text fit for our user's terminal: without control characters, of bounded length.
std::string printable(const std::string& text);

// What the reason of a closed link says before the reason that the peer gave in its bye.
inline constexpr std::string_view peer_said_bye = "it ended the session: ";

// As many as the list has room for.
void write_texts(const std::vector<std::string>& texts, capnp::List<capnp::Text>::Builder to);
std::vector<std::string> read_texts(capnp::List<capnp::Text>::Reader from);

}  // namespace gpr
