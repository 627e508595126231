// What the acceptors see at this moment, for whoever looks at the session.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "base/address.h"
#include "monitor/home/part.h"
#include "monitor/node/observed.h"
#include "monitor/node/open_questions.h"
#include "transport/wire.h"

namespace gpr::home {

struct RemoteNode;

class Observations {
public:
    explicit Observations(Home& home);

    struct Question {
        pid_t pid = 0;  // 0: all processes
        bool threads = false;
        bool registers = false;     // of threads that compute, which are stopped for a moment
        std::vector<Range> ranges;  // of the process; no more than most_observed_ranges
    };
    // One answer for each acceptor, by node from 1. Also updates RemoteNode::counts.
    Task<std::vector<Observed>> ask(Question question);
    // Where a thread that computes at home stands; it is stopped for a moment. nullopt for a thread
    // that waits, which must not be disturbed.
    Task<std::optional<Standing>> where_stands(pid_t pid, pid_t tid);
    void on_answer(RemoteNode& node, wire::ObserveAnswer::Reader answer);
    // No acceptor will answer any more.
    void on_link_closed() { questions_.answer_all({}); }

private:
    Home& home_;
    OpenQuestions<Observed> questions_;
};

}  // namespace gpr::home
