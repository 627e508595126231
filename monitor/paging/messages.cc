#include "monitor/paging/messages.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "monitor/paging/pager.h"

namespace gpr::paging {

namespace {
constexpr uint64_t most_queued_bytes = 256 << 10;
}  // namespace

void Messages::receive(NodeId from, Message message) {
    auto* request = std::get_if<Request>(&message.body);
    ObjectId wanted = request ? request->run.object : 0;
    bool shared = request && pager_.shared.contains(wanted);
    bool writes_file =
        shared && pager_.shared.may_lack_room(wanted) && request->access == Access::write;
    bool is_at_home = shared && pager_.shared.is_used_at_home(wanted);
    if (core_.directory && (is_at_home || writes_file)) {
        // Only what a thread there waits for is sent. Pages sent ahead would be lent for longer,
        // while home's threads write them without a fault; and holes of files that nobody writes
        // shall stay holes.
        if (request->must == 0) return;
        request->run.count = std::min(request->run.count, request->must);
        request->have_epochs.resize(std::min<size_t>(request->have_epochs.size(), request->must));
    }
    if (core_.directory && request && request->must == 0) {
        read_ahead_.emplace_back(from, std::move(message));
        return serve_read_ahead();
    }
    if (core_.directory) {
        core_.directory->on_message(from, std::move(message), core_.now());
    } else {
        pager_.traffic.note(message);
        core_.agent.on_message(std::move(message), core_.now());
    }
    core_.settle();
}

// Serves read-ahead one request at a time, after all urgent messages, and only as fast as the link
// sends, so that an urgent page waits behind one of these at most.
void Messages::serve_read_ahead() {
    if (read_ahead_posted_ || read_ahead_.empty()) return;
    if (queued_bytes_ && queued_bytes_() > most_queued_bytes) return;  // on_drained() resumes
    read_ahead_posted_ = true;
    core_.loop.post([this] {
        read_ahead_posted_ = false;
        if (read_ahead_.empty()) return;
        auto [from, message] = std::move(read_ahead_.front());
        read_ahead_.pop_front();
        core_.directory->on_message(from, std::move(message), core_.now());
        core_.settle();
        serve_read_ahead();
    });
}

void Messages::send(SendMessage& action) {
    // What this node's agent sends, or gets from the directory on the same node.
    if (action.to == core_.self || !core_.directory) pager_.traffic.note(action.message);
    if (action.to != core_.self) {
        send_(action.to, action.bulk, action.message);
    } else if (std::holds_alternative<Request>(action.message.body) ||
               std::holds_alternative<Surrender>(action.message.body) ||
               std::holds_alternative<Push>(action.message.body) ||
               std::holds_alternative<Ack>(action.message.body)) {
        core_.directory->on_message(core_.self, std::move(action.message), core_.now());
    } else {
        core_.agent.on_message(std::move(action.message), core_.now());
    }
}

}  // namespace gpr::paging
