#include "monitor/debug/gdb_server.h"

#include "monitor/debug/gdb_conversation.h"

namespace gpr::debug {

GdbServer::GdbServer(Debuggee& debuggee, std::function<void(std::string)> send,
                     std::function<void()> hang_up)
    : conversation_(
          std::make_shared<GdbConversation>(debuggee, std::move(send), std::move(hang_up))) {}

GdbServer::~GdbServer() { conversation_->abandon(); }

// The methods copy conversation_, because what they call may destroy this object.

void GdbServer::receive(std::string_view bytes) {
    const auto conversation = conversation_;
    conversation->receive(bytes);
}

void GdbServer::on_stop(const StopReason& why) {
    const auto conversation = conversation_;
    conversation->on_stop(why);
}

void GdbServer::closed() {
    const auto conversation = conversation_;
    conversation->close();
}

}  // namespace gpr::debug
