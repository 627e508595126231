// A command that goes on in the background once it has done what its user waits for.
#pragma once

#include <functional>

namespace gpr {

// Runs `work` in a child process, in a session of its own. Returns 0 as soon as the work calls its
// argument; until then the child's end is this command's: returns its exit status. From then on the
// child has neither the standard files nor `messages`, a descriptor for messages to the user, so
// that nobody who reads what the command writes waits for its end.
using GoesOnAlone = std::function<void(int messages)>;
int in_background(const std::function<int(const GoesOnAlone& goes_on)>& work);

}  // namespace gpr
