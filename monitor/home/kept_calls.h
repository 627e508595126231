// Calls about descriptors of acceptors by a process that has no fragment there, because it shares
// its parent's memory or is not split yet. The acceptor keeps the descriptors for it, and makes the
// calls.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <cstdint>
#include <set>

#include "mm/page_protocol.h"
#include "monitor/home/part.h"
#include "monitor/node/open_questions.h"
#include "monitor/tracee/notifier.h"
#include "transport/wire.h"

namespace gpr::home {

class KeptCalls {
public:
    explicit KeptCalls(Home& home);

    // Acceptors know of the process from now on, and may keep descriptors for it.
    void note_known(pid_t pid) { known_.insert(pid); }
    // The process has ended. Whether they knew of it.
    bool forget(pid_t pid) { return known_.erase(pid) > 0; }
    // A child has been born at home. It has its parent's descriptors.
    void on_birth(const HomeProcess& parent, const HomeProcess& child);
    // Whether the call can be made this way.
    [[nodiscard]] static bool knows(uint32_t number);
    Task<void> make(pid_t pid, Notification n);
    void on_done(wire::KeptDone::Reader done);
    // No acceptor will answer any more.
    void on_link_closed() { questions_.answer_all({-EBADF, 0}); }

private:
    struct Answer {
        int64_t result = 0;
        uint64_t file = 0;  // for dup2: the acceptor's file that shall get a name
    };

    Task<Answer> ask(pid_t pid, Notification n, NodeId owner);

    Home& home_;
    std::set<pid_t> known_;
    OpenQuestions<Answer> questions_;
};

}  // namespace gpr::home
