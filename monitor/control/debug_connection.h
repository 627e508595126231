// A debugger's connection to one process of a session, in gdb's remote protocol.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "base/task.h"
#include "monitor/debug/gdb_server.h"
#include "transport/loop.h"

namespace gpr {

namespace home {
class DebuggedProcess;
struct Home;
}  // namespace home

class DebugConnection {
public:
    // Stops the process. Nothing is sent before take().
    static Task<Result<std::shared_ptr<DebugConnection>>> begin(home::Home& home, pid_t pid);
    // The process continues without a debugger.
    ~DebugConnection();
    DebugConnection(const DebugConnection&) = delete;
    DebugConnection& operator=(const DebugConnection&) = delete;

    // over: called when the connection has ended and this object may be destroyed.
    void take(Fd fd, std::function<void()> over);

private:
    DebugConnection(home::Home& home, std::shared_ptr<home::DebuggedProcess> process);
    void watch();
    void on_ready(uint32_t events);
    void send(std::string_view bytes);
    void flush();
    void end();

    home::Home& home_;
    std::shared_ptr<home::DebuggedProcess> process_;
    debug::GdbServer server_;
    Fd fd_;
    Watch watch_;
    std::string unsent_;
    bool ends_ = false;  // once everything has been sent
    std::function<void()> over_;
};

}  // namespace gpr
