// What a worker asks the daemon, and the answers: the same messages that peers exchange, over a
// socket that keeps message boundaries.
#pragma once

#include "transport/handshake.h"

namespace gpr {

Result<> send_hello(int channel, const Hello& hello);
// EAGAIN: nothing has arrived yet. After any other error nothing ever will.
Result<Hello> receive_hello(int channel);

// Never waits: a worker that does not read its answer gets none.
Result<> send_verdict(int channel, const Result<Welcome>& verdict);
// Waits. A refusal is returned as an error.
Result<Welcome> receive_verdict(int channel);

}  // namespace gpr
