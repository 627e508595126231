// FUTEX_REQUEUE and FUTEX_CMP_REQUEUE of private words whose waiters may be on several nodes. The
// caller's node moves its own waiters first, then asks the others to move theirs as far as the
// call's counts reach, and the call returns when all have answered. Meanwhile the first word is
// held in memory here, so nobody elsewhere can begin to wait for it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/task.h"
#include "monitor/node/futex_news.h"
#include "monitor/node/open_questions.h"
#include "monitor/paging/fragment.h"
#include "monitor/paging/pager.h"
#include "transport/link.h"

namespace gpr {

struct FutexMove {
    uint64_t from = 0, to = 0;
    int32_t wake = 0, move = 0;  // at most so many of each
};
// nullopt for all other calls, also with words that are not private.
std::optional<FutexMove> futex_move_of(uint32_t number, const uint64_t (&args)[6]);
// What is left to do when so many waiters have been woken or, beyond those, moved.
FutexMove rest_of(FutexMove move, int64_t done);

class FutexMoves {
public:
    FutexMoves(Loop& loop, Pager& pager, FutexNews& news)
        : loop_(loop), pager_(pager), news_(news), asked_(loop) {}

    // Makes the call, with these arguments. nullopt if that is not possible here, because the word
    // is not in private memory that can be written. name: of the process, in the session.
    Task<std::optional<int64_t>> make(std::shared_ptr<Fragment> fragment, pid_t name,
                                      FutexMove move, std::vector<uint64_t> args);
    // For another node, `from`, and all that only this one can ask. fragment: null if there is none
    // here.
    Task<void> serve(std::shared_ptr<Fragment> fragment, std::shared_ptr<ReceivedFrame> frame,
                     Link& link, NodeId from);
    void on_answer(wire::FutexMove::Reader answer);

private:
    Task<int64_t> ask_others(pid_t name, FutexMove move, std::optional<NodeId> but);

    Loop& loop_;
    Pager& pager_;
    FutexNews& news_;
    OpenQuestions<int64_t> asked_;
};

}  // namespace gpr
