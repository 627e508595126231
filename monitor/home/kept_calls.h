// Calls about descriptors of acceptors that a process makes which has no fragment there: it shares
// its parent's memory, or is young. The acceptor keeps the descriptors for it, and makes the calls.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <cstdint>

#include "mm/page_protocol.h"
#include "monitor/home/part.h"
#include "monitor/node/open_questions.h"
#include "monitor/tracee/notifier.h"
#include "transport/wire.h"

namespace gpr::home {

class KeptCalls {
public:
    explicit KeptCalls(Home& home);

    // Of a thread at home, which has descriptors of acceptors.
    void on_birth(const HomeProcess& parent, const HomeProcess& child);
    // Whether such a call can be made so.
    [[nodiscard]] static bool knows(uint32_t number);
    Task<void> make(pid_t pid, Notification n);
    void on_done(wire::KeptDone::Reader done);
    // Nobody answers any more.
    void on_link_closed() { questions_.answer_all({-EBADF, 0}); }

private:
    struct Answer {
        int64_t result = 0;
        uint64_t file = 0;  // of dup2: to be named
    };

    Task<Answer> ask(pid_t pid, Notification n, NodeId owner);

    Home& home_;
    OpenQuestions<Answer> questions_;
};

}  // namespace gpr::home
