// What a worker asks the daemon, and what it is answered: the same messages that peers exchange, on
// a socket that keeps them whole.
#pragma once

#include "transport/handshake.h"

namespace gpr {

Result<> send_hello(int channel, const Hello& hello);
// EAGAIN: nothing yet. Any other error: nothing will ever come.
Result<Hello> receive_hello(int channel);

// Never waits: who does not read its answer gets none.
Result<> send_verdict(int channel, const Result<Welcome>& verdict);
// Waits. A refusal is an error.
Result<Welcome> receive_verdict(int channel);

}  // namespace gpr
