// What every part of home names: the session's state and other parts, which are in home.h, its
// processes and threads, calls of theirs, and what the acceptor sends.
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
