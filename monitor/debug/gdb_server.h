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
    // The process is stopped now. hang_up: the conversation is over when what was sent has
    // arrived.
    GdbServer(Debuggee& debuggee, std::function<void(std::string)> send,
              std::function<void()> hang_up);
    // Neither sends nor touches the process any more.
    ~GdbServer();
    GdbServer(const GdbServer&) = delete;
    GdbServer& operator=(const GdbServer&) = delete;

    void receive(std::string_view bytes);
    // All threads are stopped, or the process has ended.
    void on_stop(const StopReason& why);
    // The debugger has gone. The process is detached unless it has ended or was detached.
    void closed();

private:
    std::shared_ptr<GdbConversation> conversation_;
};

}  // namespace gpr::debug
