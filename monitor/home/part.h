// What every part of home includes: processes and threads, their calls, and what acceptors send.
// The session's state and the other parts are in home.h.
#pragma once

#include <memory>

#include "base/task.h"

namespace gpr {

class Fragment;
class ReceivedFrame;
class StubThread;
struct HomeProcess;
struct HomeThread;
struct Notification;

namespace home {

struct Home;
using Frame = std::shared_ptr<ReceivedFrame>;

}  // namespace home

}  // namespace gpr
