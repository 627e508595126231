// A session and its threads as they are at this moment, for people and programs. Nothing here stops
// a thread or moves a page.
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
    std::vector<std::string> devices;  // the acceptors' devices that it was given
};

class SessionView {
public:
    SessionView(home::Home& home, SessionFacts facts);

    Task<nlohmann::json> session();
    Task<nlohmann::json> threads();

private:
    [[nodiscard]] std::string name_of(unsigned node) const;
    [[nodiscard]] std::vector<pid_t> pids() const;
    // CPU time spent at acceptors, by ended processes too.
    Task<uint64_t> used_away_ns();
    Task<nlohmann::json> thread(pid_t pid, pid_t tid);

    home::Home& home_;
    SessionFacts facts_;
    time_t since_;
    pid_t root_ = 0;  // 0 until it is known
};

}  // namespace gpr
