#include "monitor/debug/gdb_conversation.h"

#include <algorithm>
#include <utility>

#include "monitor/debug/gdb_register_packets.h"

namespace gpr::debug {

namespace {
// gdb waits for an answer before it sends the next packet.
constexpr size_t most_waiting = 16;
}  // namespace

GdbConversation::GdbConversation(Debuggee& debuggee, std::function<void(std::string)> send,
                                 std::function<void()> hang_up)
    : debuggee_(debuggee),
      send_(std::move(send)),
      hang_up_(std::move(hang_up)),
      threads_(debuggee),
      files_(debuggee),
      transfers_(debuggee, threads_),
      thread_locals_(debuggee, threads_) {}

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
            debuggee_.interrupt();
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

void GdbConversation::close() {
    if (phase_ != Phase::over && !has_ended()) debuggee_.detach();
    phase_ = Phase::over;
    waiting_.clear();
}

void GdbConversation::abandon() {
    phase_ = Phase::over;
    waiting_.clear();
}

void GdbConversation::on_stop(const StopReason& why) {
    if (phase_ == Phase::over) return;
    stop_ = why;
    if (why.kind == StopReason::Kind::exec) thread_locals_.forget();
    // A debugger that does not know exec events is told that the process has ended.
    if (why.kind == StopReason::Kind::exec && !told_of_exec_) {
        debuggee_.detach();
        stop_ = {StopReason::Kind::exited, why.tid, 0};
    }
    // A process that was not resumed can only have ended: resume() will tell of that.
    if (phase_ != Phase::running) return;
    if (passes(stop_)) {
        debuggee_.go_on(resumption_->apply_with(debuggee_.threads(), why.tid, why.value));
        return;
    }
    tell_stop();
    if (phase_ == Phase::stopped) start_work();
}

// Whether the signal is delivered without telling gdb. Not if the thread steps, because it would
// arrive in the signal's handler.
bool GdbConversation::passes(const StopReason& why) {
    if (why.kind != StopReason::Kind::signal || why.call || why.fork || !resumption_ ||
        !passed_signals_.contains(why.value))
        return false;
    if (interrupted_ && why.value == SIGINT) return false;
    const auto continued = resumption_->apply({why.tid}, 0);
    return continued.empty() || !continued.front().steps;
}

void GdbConversation::tell_stop() {
    phase_ = Phase::stopped;
    threads_.name_child(forked_ = stop_.fork && !stop_.fork->is_over ? stop_.fork->child : 0);
    if (!has_ended() && threads_.exists(stop_.tid)) threads_.choose(stop_.tid);
    send(stop_reply(debuggee_, threads_, stop_));
    if (has_ended()) end();
}

GdbConversation::Answer GdbConversation::resume(std::optional<Resumption> how) {
    if (!how) return "E16";
    if (has_ended()) {
        tell_stop();
        return std::nullopt;
    }
    const auto threads = debuggee_.threads();
    const auto continuations = how->apply(threads, stop_.tid);
    if (continuations.empty() && !threads.empty()) {
        // The threads that were to continue have ended: no stop would follow.
        stop_.value = 0;
        tell_stop();
        return std::nullopt;
    }
    resumption_ = std::move(how);
    interrupted_ = false;
    phase_ = Phase::running;
    // A process without threads is about to end, and on_stop() will tell of that.
    if (!continuations.empty()) debuggee_.go_on(continuations);
    return std::nullopt;
}

void GdbConversation::kill() {
    if (!has_ended()) debuggee_.kill();
    end();
}

void GdbConversation::detach() {
    if (!has_ended()) debuggee_.detach();
    end();
}

}  // namespace gpr::debug
