// The server's side of gdb's remote protocol, for one process and one connection. It has no
// descriptor and no clock: bytes come in, bytes go out.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "monitor/debug/debuggee.h"

namespace gpr::debug {

class GdbConversation;

class GdbServer {
public:
    // The process must be stopped. hang_up: the connection is to be closed once everything has been
    // sent.
    GdbServer(Debuggee& debuggee, std::function<void(std::string)> send,
              std::function<void()> hang_up);
    // Afterwards nothing is sent, and the process is not touched.
    ~GdbServer();
    GdbServer(const GdbServer&) = delete;
    GdbServer& operator=(const GdbServer&) = delete;

    void receive(std::string_view bytes);
    // To be called when all threads are stopped, or the process has ended.
    void on_stop(const StopReason& why);
    // The connection has ended. Detaches from the process unless it has ended or is detached.
    void closed();

private:
    std::shared_ptr<GdbConversation> conversation_;
};

}  // namespace gpr::debug
