// Replays what `gpr exec --record=FILE` wrote: tells whether the directory decides the same again,
// and who waits for whom when the record ends.
#pragma once

#include <string>

namespace gpr::sim {

// verbose: prints every event and decision. Gives the exit status.
int replay_file(const std::string& path, bool verbose);

}  // namespace gpr::sim
