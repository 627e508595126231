#include "transport/simulated_link.h"

#include <algorithm>
#include <cstring>

#include "transport/frame_encoder.h"
#include "transport/frame_receiver.h"

namespace gpr {

void SimulatedClock::after(Duration delay, std::function<void()> work) {
    events_.emplace(std::make_pair(now_ + delay, order_++), std::move(work));
}

bool SimulatedClock::step() {
    if (events_.empty()) return false;
    auto event = events_.extract(events_.begin());
    now_ = event.key().first;
    event.mapped()();
    return true;
}

uint64_t SimulatedClock::run(uint64_t max_events) {
    uint64_t count = 0;
    while (count < max_events && step()) ++count;
    return count;
}

void SimulatedClock::run_for(Duration span) {
    Duration end = now_ + span;
    while (!events_.empty() && events_.begin()->first.first <= end) step();
    now_ = end;
}

struct SimulatedNetwork {
    SimulatedClock& clock;
    std::mt19937_64 random;
    SimulatedLinkOptions options;
    std::array<SimulatedLink*, 2> ends{};
    std::array<bool, 2> dead{};
    // When the last frame of [sender][priority] arrives: no later frame may arrive before it.
    std::array<std::array<SimulatedClock::Duration, 2>, 2> busy_until{};

    SimulatedClock::Duration arrival(size_t sender, Priority priority) {
        std::uniform_int_distribution<int64_t> delay(options.min_delay.count(),
                                                     options.max_delay.count());
        auto& last = busy_until[sender][static_cast<size_t>(priority)];
        last = std::max(last, clock.now() + SimulatedClock::Duration(delay(random)));
        return last;
    }
};

class SimulatedLink : public Link {
public:
    SimulatedLink(std::shared_ptr<SimulatedNetwork> shared, size_t side, std::string peer)
        : shared_(std::move(shared)), side_(side), peer_name_(std::move(peer)) {
        shared_->ends[side_] = this;
    }
    ~SimulatedLink() override {
        shared_->ends[side_] = nullptr;
        if (!ended_) tell_other("it closed the connection without a word");
    }

    void send(FrameBuilder& frame, Priority priority) override {
        if (ended_ || shared_->dead[side_]) return;
        prepare_to_send();
        FrameEncoder encoder;
        if (auto started = encoder.start(frame, priority); !started) return end(started.error());
        std::vector<std::byte> bytes;
        while (encoder.next()) {
            for (const iovec& part : encoder.parts()) {
                const auto* data = static_cast<const std::byte*>(part.iov_base);
                bytes.insert(bytes.end(), data, data + part.iov_len);
            }
        }
        ++stats_.frames_out;
        stats_.bytes_out += bytes.size();
        at_other(shared_->arrival(side_, priority),
                 [bytes = std::move(bytes)](SimulatedLink& other) { other.arrive(bytes); });
    }
    void hold() override {}
    void release() override {}
    [[nodiscard]] uint64_t queued_bytes() const override { return 0; }
    void close(std::string reason) override {
        if (ended_) return;
        tell_other("it ended the session: " + reason);
        end_with({0, std::move(reason)});
    }
    [[nodiscard]] const std::string& peer_name() const override { return peer_name_; }

    // Ends the link because of the peer.
    void end(const Error& reason) {
        end_with({reason.code, fmt::format("lost {}: {}", peer_name_, reason.what)});
    }
    void die() {
        ended_ = true;
        auto notice = shared_->clock.now() + shared_->options.death_notice;
        at_other(
            notice,
            [](SimulatedLink& other) {
                other.end({0, "it has been silent"});
            },
            true);
    }

private:
    void arrive(const std::vector<std::byte>& bytes) {
        if (ended_) return;
        FrameReceiver receiver{FrameLimits{}};
        size_t given = 0;
        while (given < bytes.size()) {
            auto space = receiver.space();
            size_t n = std::min(space.size(), bytes.size() - given);
            memcpy(space.data(), bytes.data() + given, n);
            receiver.received(n);
            given += n;
            auto frame = receiver.next();
            if (!frame) return end(frame.error());
            if (!*frame) continue;
            ++stats_.frames_in;
            stats_.bytes_in += bytes.size();
            if (frame_handler_) frame_handler_(std::move(**frame));
            return;  // one frame only, because the handler may have destroyed this object
        }
        GPR_ASSERT(!"a sent frame must arrive whole");
    }

    // Nothing from a dead host arrives any more, except the notice of its death.
    void at_other(SimulatedClock::Duration when, std::function<void(SimulatedLink&)> work,
                  bool also_dead = false) {
        shared_->clock.after(when - shared_->clock.now(),
                             [shared = shared_, side = side_, also_dead, work = std::move(work)] {
                                 SimulatedLink* other = shared->ends[1 - side];
                                 if (other && (also_dead || !shared->dead[side])) work(*other);
                             });
    }

    // Arrives after everything that was sent.
    void tell_other(const std::string& reason) {
        if (shared_->dead[side_]) return;
        auto when = std::max(shared_->arrival(side_, Priority::bulk),
                             shared_->arrival(side_, Priority::urgent));
        at_other(when, [reason](SimulatedLink& other) { other.end({0, reason}); });
    }

    void end_with(Error reason) {
        if (std::exchange(ended_, true)) return;
        shared_->clock.post([shared = shared_, side = side_, reason = std::move(reason)] {
            SimulatedLink* self = shared->ends[side];
            if (!self || shared->dead[side] || !self->closed_handler_) return;
            auto handler = self->closed_handler_;
            handler(reason);
        });
    }

    std::shared_ptr<SimulatedNetwork> shared_;
    size_t side_;
    std::string peer_name_;
    bool ended_ = false;
};

SimulatedPair::SimulatedPair(SimulatedClock& clock, uint64_t seed, SimulatedLinkOptions options)
    : shared_(new SimulatedNetwork{clock, std::mt19937_64(seed), options}),
      first_(std::make_unique<SimulatedLink>(shared_, 0, "acceptor simulated")),
      second_(std::make_unique<SimulatedLink>(shared_, 1, "initiator simulated")) {}

SimulatedPair::~SimulatedPair() = default;

Link& SimulatedPair::first() { return *first_; }
Link& SimulatedPair::second() { return *second_; }

void SimulatedPair::kill_first() {
    shared_->dead[0] = true;
    first_->die();
}

}  // namespace gpr
