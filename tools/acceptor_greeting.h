// Connects to an acceptor only to read its welcome.
#pragma once

#include <string>

#include "tools/settings.h"
#include "transport/handshake.h"

namespace gpr {

// The credential comes from the settings. `hello` says what is asked for; the rest is filled in.
Result<EstablishedAcceptor> greet_acceptor_at(const std::string& address, const Settings& settings,
                                              Hello hello);

}  // namespace gpr
