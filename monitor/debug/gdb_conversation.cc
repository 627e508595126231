#include "monitor/debug/gdb_conversation.h"

#include <algorithm>
#include <utility>

namespace gpr::debug {

namespace {
// gdb waits for an answer before it sends the next packet.
constexpr size_t most_waiting = 16;
}  // namespace

GdbConversation::GdbConversation(Debuggee& debuggee, std::function<void(std::string)> send,
                                 std::function<void()> hang_up)
    : processes_(debuggee),
      send_(std::move(send)),
      hang_up_(std::move(hang_up)),
      threads_(processes_),
      files_(processes_),
      transfers_(processes_, threads_),
      thread_locals_(processes_, threads_) {}

void GdbConversation::receive(std::string_view bytes) {
    while (phase_ != Phase::over) {
        auto arrival = reader_.next(bytes);
        if (!arrival) return;
        take(std::move(*arrival));
    }
}

void GdbConversation::take(PacketReader::Arrival arrival) {
    using Kind = PacketReader::Kind;
    switch (arrival.kind) {
        case Kind::acknowledged: last_sent_.clear(); return;
        case Kind::not_received:
            if (!last_sent_.empty()) send_(last_sent_);
            return;
        case Kind::interrupt:
            if (phase_ != Phase::running) return;  // sent before our stop reply arrived
            interrupted_ = true;
            for (auto& [pid, one] : processes_.all()) {
                if (one.runs && first_stopped_ == 0) return one.process->interrupt(SIGINT);
            }
            return;
        case Kind::damaged:
            // Without acknowledgements a damaged packet is not sent again.
            return acknowledges_ ? send_("-") : give_up();
        case Kind::too_long: return give_up();
        case Kind::packet: break;
    }
    if (waiting_.size() >= most_waiting) return give_up();
    if (acknowledges_) send_("+");
    waiting_.push_back(std::move(arrival.content));
    start_work();
}

void GdbConversation::start_work() {
    if (!std::exchange(working_, true)) spawn(work(shared_from_this()));
}

Task<void> GdbConversation::work(std::shared_ptr<GdbConversation> self) {
    while (self->phase_ == Phase::stopped && !self->waiting_.empty()) {
        std::string packet = std::move(self->waiting_.front());
        self->waiting_.pop_front();
        const Answer answer = co_await self->answer(std::move(packet));
        if (answer && self->phase_ != Phase::over) self->send(*answer);
    }
    self->working_ = false;
}

void GdbConversation::send(std::string_view content) {
    std::string packet = to_packet(content);
    if (acknowledges_) last_sent_ = packet;
    send_(std::move(packet));
}

void GdbConversation::end() {
    phase_ = Phase::over;
    waiting_.clear();
    hang_up_();
}

// For a debugger that violates the protocol.
void GdbConversation::give_up() {
    close();
    hang_up_();
}

void GdbConversation::abandon() {
    phase_ = Phase::over;
    waiting_.clear();
}

}  // namespace gpr::debug
