// A core file (core(5)) of a process that goes on: what Linux would write if the process ended now.
// Pure: it comes as pieces for a sink.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/task.h"
#include "monitor/debug/debuggee.h"

namespace gpr::debug {

// Of the process, as the notes of a core file tell it.
struct CoreIdentity {
    pid_t parent = 0, group = 0, session = 0;
    uid_t user = 0;
    gid_t user_group = 0;
    std::string name;       // up to 15 bytes
    std::string arguments;  // up to 79 bytes
};

class CoreSink {
public:
    CoreSink() = default;
    CoreSink(const CoreSink&) = delete;
    CoreSink& operator=(const CoreSink&) = delete;
    virtual ~CoreSink() = default;

    // Bytes of the file, in ascending order. What is not put is a hole. False: nobody wants more.
    virtual Task<bool> put(uint64_t offset, std::string bytes) = 0;
};

// The process must be stopped. Returns the file's size. Both must outlive the task.
Task<Result<uint64_t>> write_core(Debuggee& debuggee, CoreIdentity identity, CoreSink& sink);

}  // namespace gpr::debug
