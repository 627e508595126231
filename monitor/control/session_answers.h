// A session and its threads as they are at this moment, for people and programs. Nothing but
// registers() stops a thread, and nothing but memory() moves a page.
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

class SessionAnswers {
public:
    SessionAnswers(home::Home& home, SessionFacts facts);

    Task<nlohmann::json> session();
    // What --stats prints at the end, up to now; `words` has the same as text.
    Task<nlohmann::json> statistics();
    // Tells what a thread waits for only if the asking user may read its process in /proc.
    Task<nlohmann::json> threads(std::function<bool(pid_t pid)> may_read);
    // The mappings of one process. most_cells: with its pages that have moved, in so many cells of
    // each mapping (page_cells.h); 0: without.
    Task<nlohmann::json> mappings(pid_t pid, bool with_resident, uint64_t most_cells);
    // The pages that moved most.
    Task<nlohmann::json> pages(pid_t pid);
    // Between which places in its code the process's threads crossed most.
    Task<nlohmann::json> crossings(pid_t pid);
    // Where the process's threads are: for those that compute all registers and the top of their
    // stacks, for which they are stopped for a moment; for those that wait rip and rsp.
    Task<nlohmann::json> registers(pid_t pid);
    // The process's memory, in hexadecimal digits, as far as it is mapped and up to
    // most_memory_bytes. Pages that home lacks are fetched.
    Task<nlohmann::json> memory(pid_t pid, uint64_t address, uint64_t bytes);

private:
    // "home", or the user's name for an acceptor.
    [[nodiscard]] std::string name_of(unsigned node) const;
    [[nodiscard]] Usage used_at_home() const;
    nlohmann::json thread(const HomeThread& thread, const ObservedThread* away) const;
    [[nodiscard]] nlohmann::json range(const HomeProcess& process, const Mapping& mapping,
                                       const std::string& name) const;
    Task<std::vector<nlohmann::json>> ranges_of(pid_t pid);
    Task<void> add_resident(pid_t pid, std::vector<nlohmann::json>& mappings);
    Task<void> add_cells(pid_t pid, uint64_t most, std::vector<nlohmann::json>& mappings);

    home::Home& home_;
    SessionFacts facts_;
    time_t since_;
    pid_t root_ = 0;  // 0 until it is known
};

}  // namespace gpr
