// A session and its threads as they are at this moment, for people and programs. Nothing here stops
// a thread or moves a page.
#pragma once

#include <sys/types.h>

#include <ctime>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/task.h"

namespace gpr {

struct HomeProcess;
struct HomeThread;
struct Mapping;
struct Observed;
struct ObservedThread;
struct Usage;

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
    // As --stats tells it at the end, so far; `words` has the same for people.
    Task<nlohmann::json> statistics();
    // What a thread waits for is told of processes that the asking user may read in /proc.
    Task<nlohmann::json> threads(std::function<bool(pid_t pid)> may_read);
    // Of one process.
    Task<nlohmann::json> mappings(pid_t pid, bool with_resident);
    // Those that moved most.
    Task<nlohmann::json> pages(pid_t pid);
    // Where its threads stand: all registers of those that compute, which are stopped for a moment,
    // and rip and rsp of those that wait; of those that were stopped also what was on their stacks.
    Task<nlohmann::json> registers(pid_t pid);
    // Its memory as it sees it, in hexadecimal digits, as far as it is mapped; no more than
    // most_memory_bytes. Pages come to home for that.
    Task<nlohmann::json> memory(pid_t pid, uint64_t address, uint64_t bytes);

private:
    // In the order of the acceptors.
    [[nodiscard]] std::string name_of(unsigned node) const;
    [[nodiscard]] Usage used_at_home() const;
    nlohmann::json thread(const HomeThread& thread, const ObservedThread* away) const;
    [[nodiscard]] nlohmann::json range(const HomeProcess& process, const Mapping& mapping,
                                       const std::string& name) const;
    Task<std::vector<nlohmann::json>> ranges_of(pid_t pid);
    Task<void> add_resident(pid_t pid, std::vector<nlohmann::json>& mappings);

    home::Home& home_;
    SessionFacts facts_;
    time_t since_;
    pid_t root_ = 0;  // 0 until it is known
};

}  // namespace gpr
