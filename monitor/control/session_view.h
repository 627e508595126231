// A session and its threads as they are at this moment, for people and programs that look at it.
// Nothing here stops a thread or moves a page.
#pragma once

#include <sys/types.h>

#include <ctime>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/task.h"

namespace gpr {

struct HomeThread;

namespace home {
struct Home;
}  // namespace home

// What is known of a session when it begins.
struct SessionFacts {
    std::vector<std::string> devices;  // of acceptors, that it has been given
};

class SessionView {
public:
    SessionView(home::Home& home, SessionFacts facts);

    Task<nlohmann::json> session();
    Task<nlohmann::json> threads();

private:
    [[nodiscard]] std::string name_of(unsigned node) const;
    [[nodiscard]] std::vector<pid_t> pids() const;
    // CPU time at acceptors, of those that have ended too.
    Task<uint64_t> used_away_ns();
    Task<nlohmann::json> thread(pid_t pid, pid_t tid);

    home::Home& home_;
    SessionFacts facts_;
    time_t since_;
    pid_t root_ = 0;  // once it is known
};

}  // namespace gpr
