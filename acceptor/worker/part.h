// What every part of a worker names: the session's state and other parts, which are in worker.h,
// its processes and threads, calls of theirs, and what home sends.
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
