#include "mm/read_ahead.h"

#include <algorithm>
#include <cstdlib>

namespace gpr {

const std::vector<ReadAhead::Ask>& ReadAhead::on_fault(const Touch& touch) {
    asks_.clear();
    ++uses_;
    Stream* s = follow(touch);
    if (!s) s = begin(touch);
    // A block that is touched in no order has adjacent pages, too, which seem to begin a stream.
    const bool may_be_block = !s || s->depth < options_.surely_stream;
    if (!(may_be_block && ask_block(touch)) && s) ask(*s, touch);
    return asks_;
}

void ReadAhead::forget(ObjectId object) {
    std::erase_if(streams_, [&](const Stream& s) { return s.last.object == object; });
    blocks_.forget(object);
}

bool ReadAhead::ask_block(const Touch& touch) {
    if (touch.come) return false;
    const auto block =
        blocks_.on_miss({touch.key, touch.access, touch.pages_before, touch.pages_after});
    if (!block) return false;
    Ask a;
    a.first = block->first;
    a.count = block->count;
    a.access = block->access;
    asks_.push_back(a);
    return true;
}

// The stream that this fault belongs to, advanced to it.
ReadAhead::Stream* ReadAhead::follow(const Touch& touch) {
    for (Stream& s : streams_) {
        if (s.stride == 0 || s.tid != touch.tid || s.last.object != touch.key.object ||
            s.access != touch.access) {
            continue;
        }
        const auto distance = static_cast<int64_t>(touch.key.index - s.last.index);
        const int64_t steps = distance / s.stride;
        // Up to the first page that was not requested.
        if (distance % s.stride != 0 || steps < 0 || static_cast<uint64_t>(steps) > s.asked + 1) {
            continue;
        }
        s.used = uses_;
        if (steps == 0) return &s;
        s.last = touch.key;
        s.asked -= std::min<uint64_t>(s.asked, static_cast<uint64_t>(steps));
        if (s.stride == 1) s.asked = std::max<uint64_t>(s.asked, touch.ahead);
        s.passed += static_cast<uint64_t>(steps);
        const bool late = !touch.come || s.depth < options_.comfortable;
        if (late && s.passed >= s.depth) {
            const bool dense = std::abs(s.stride) == 1;
            const uint32_t most = dense ? options_.most_ahead : options_.most_strided;
            s.depth = std::min(most, s.depth * 2 + 1);
            s.passed = 0;
        }
        return &s;
    }
    return nullptr;
}

// A new stream, if this fault shows that there is one; otherwise the fault may be the first of one.
ReadAhead::Stream* ReadAhead::begin(const Touch& touch) {
    int64_t distance = 0;
    Stream* s = nearest_guess(touch, distance);
    if (s && distance == 0) return nullptr;
    const bool next =
        s && (distance == -1 || (distance > 0 && distance <= static_cast<int64_t>(s->asked) + 1));
    const bool again = s && s->distance == distance;
    if (s && !next && !again && s->distance != 0) s = nullptr;
    if (!s) {
        room_for(touch.tid) = {touch.tid, touch.access, touch.key, 0, 0, touch.ahead, 0, 0, uses_};
        return nullptr;
    }
    if (next || again) {
        s->stride = next ? (distance > 0 ? 1 : -1) : distance;
        s->depth = 2 * touch.ahead + 1;
    }
    s->asked = s->stride >= 0 ? touch.ahead : 0;
    s->distance = distance;
    s->last = touch.key;
    s->used = uses_;
    return s->stride != 0 ? s : nullptr;
}

ReadAhead::Stream* ReadAhead::nearest_guess(const Touch& touch, int64_t& distance) {
    Stream* nearest = nullptr;
    for (Stream& s : streams_) {
        if (s.stride != 0 || s.tid != touch.tid || s.last.object != touch.key.object ||
            s.access != touch.access) {
            continue;
        }
        const auto d = static_cast<int64_t>(touch.key.index - s.last.index);
        if (std::abs(d) > neighbourhood || (nearest && std::abs(d) >= std::abs(distance))) continue;
        nearest = &s;
        distance = d;
    }
    return nearest;
}

// Where to remember a thread's fault: guesses are replaced before streams.
ReadAhead::Stream& ReadAhead::room_for(Tid tid) {
    Stream* oldest = nullptr;
    Stream* oldest_guess = nullptr;
    size_t guesses = 0;
    for (Stream& s : streams_) {
        if (s.stride == 0 && s.tid == tid) {
            ++guesses;
            if (!oldest_guess || s.used < oldest_guess->used) oldest_guess = &s;
        }
        if (!oldest || s.used < oldest->used) oldest = &s;
    }
    if (guesses >= most_guesses) return *oldest_guess;
    if (streams_.size() >= most_streams) return *oldest;
    return streams_.emplace_back();
}

void ReadAhead::ask(Stream& s, const Touch& touch) {
    const bool forward = s.stride > 0;
    const auto step = static_cast<uint64_t>(std::abs(s.stride));
    const uint64_t room = (forward ? touch.pages_after : touch.pages_before) / step;
    const uint64_t wanted = std::min<uint64_t>(s.depth, room);
    // A few pages are not worth a message, unless there are no more.
    const uint64_t enough = std::min<uint64_t>(options_.chunk, s.depth / 4);
    if (wanted < s.asked + 1 || (wanted < s.asked + enough && wanted < room)) return;
    while (s.asked < wanted) {
        Ask a;
        a.stride = s.stride;
        a.access = s.access;
        a.count = static_cast<uint32_t>(std::min<uint64_t>(wanted - s.asked, options_.chunk));
        a.first = s.last.index + static_cast<uint64_t>(s.stride) * (s.asked + 1);
        if (a.count >= options_.least_with_marker) a.marker = a.count / 2;
        s.asked += a.count;
        asks_.push_back(a);
    }
}

}  // namespace gpr
