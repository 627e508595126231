#include "monitor/node/futex_moves.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace gpr {

namespace {

constexpr uint64_t word_size = 4;
// Nodes answer at once, unless they change mappings; that may need the page with the word.
constexpr std::chrono::milliseconds longest_hold{20};

StubThread& mover_of(Fragment& fragment) {
    return fragment.waker() ? *fragment.waker() : fragment.executor();
}

}  // namespace

std::optional<FutexMove> futex_move_of(uint32_t number, const uint64_t (&args)[6]) {
    if (number != SYS_futex || !(args[1] & FUTEX_PRIVATE_FLAG)) return std::nullopt;
    switch (args[1] & FUTEX_CMD_MASK & UINT32_MAX) {
        case FUTEX_REQUEUE:
        case FUTEX_CMP_REQUEUE:
            return FutexMove{args[0], args[4], static_cast<int32_t>(args[2]),
                             static_cast<int32_t>(args[3])};
        default: return std::nullopt;
    }
}

FutexMove rest_of(FutexMove move, int64_t done) {
    const int64_t woken = std::min<int64_t>(done, move.wake);
    move.wake -= static_cast<int32_t>(woken);
    move.move -= static_cast<int32_t>(std::min<int64_t>(done - woken, move.move));
    return move;
}

Task<std::optional<int64_t>> FutexMoves::make(std::shared_ptr<Fragment> fragment, pid_t name,
                                              FutexMove move, std::vector<uint64_t> args) {
    std::vector<Range> word{{{move.from}, {move.from + word_size}}};
    const uint64_t hold = co_await hold_for_call(pager_, fragment, std::move(word));
    if (hold == 0) co_return std::nullopt;
    auto held = std::make_shared<uint64_t>(hold);
    auto release = [this, held] {
        if (*held != 0) pager_.supply.release(std::exchange(*held, 0));
    };
    if (!fragment->has_helpers()) {
        release();
        co_return std::nullopt;
    }
    news_.moves_to(move.to);
    const Loop::TimerId timer = loop_.after(longest_hold, release);
    int64_t done = co_await mover_of(*fragment).call(SYS_futex, args[0], args[1], args[2], args[3],
                                                     args[4], args[5]);
    spdlog::trace("futex: {} of process {} are moved from {:#x} to {:#x} here", done, name,
                  move.from, move.to);
    if (done >= 0) done += co_await ask_others(name, rest_of(move, done), std::nullopt);
    loop_.cancel(timer);
    release();
    co_return done;
}

Task<int64_t> FutexMoves::ask_others(pid_t name, FutexMove move, std::optional<NodeId> but) {
    int64_t all = 0;
    for (Link* link : news_.links_to_waiters(move.from, but)) {
        if (move.wake <= 0 && move.move <= 0) break;
        const uint32_t cookie = asked_.begin();
        FrameBuilder frame;
        auto out = frame.session().initFutexMove();
        out.setCookie(cookie);
        out.setPid(name);
        out.setFrom(move.from);
        out.setTo(move.to);
        out.setWake(move.wake);
        out.setMove(move.move);
        link->send(frame, Priority::urgent);
        const int64_t done = co_await asked_.answer_to(cookie);
        all += done;
        move = rest_of(move, done);
    }
    co_return all;
}

// Its waiters are in the summary that goes before the answer.
Task<void> FutexMoves::serve(std::shared_ptr<Fragment> fragment,
                             std::shared_ptr<ReceivedFrame> frame, Link& link, NodeId from) {
    auto asked = frame->session().getFutexMove();
    const FutexMove move{asked.getFrom(), asked.getTo(), asked.getWake(), asked.getMove()};
    const uint32_t cookie = asked.getCookie();
    int64_t done = 0;
    if (fragment && fragment->has_helpers()) {
        news_.moves_to(move.to);
        done = co_await mover_of(*fragment).call(
            SYS_futex, move.from, FUTEX_REQUEUE | FUTEX_PRIVATE_FLAG,
            static_cast<uint64_t>(move.wake), static_cast<uint64_t>(move.move), move.to);
    }
    spdlog::trace("futex: {} of process {} are moved from {:#x} to {:#x} for node {}", done,
                  asked.getPid(), move.from, move.to, from);
    done = std::max<int64_t>(done, 0);
    done += co_await ask_others(asked.getPid(), rest_of(move, done), from);
    FrameBuilder reply;
    auto out = reply.session().initFutexMove();
    out.setCookie(cookie);
    out.setDone(true);
    out.setMoved(static_cast<int32_t>(std::min<int64_t>(done, INT32_MAX)));
    link.send(reply, Priority::urgent);
}

void FutexMoves::on_answer(wire::FutexMove::Reader answer) {
    asked_.answer(answer.getCookie(), std::max(answer.getMoved(), 0));
}

}  // namespace gpr
