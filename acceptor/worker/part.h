// What every part of a worker includes: processes and threads, their calls, and what home sends.
// The session's state and the other parts are in worker.h.
#pragma once

#include <memory>
#include <utility>

#include "base/task.h"

namespace gpr {

class Fragment;
class ReceivedFrame;
struct Notification;
struct RemoteProcess;
struct RemoteThread;

namespace worker {

struct Worker;
using Frame = std::shared_ptr<ReceivedFrame>;

}  // namespace worker

}  // namespace gpr
