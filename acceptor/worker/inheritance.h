// Descriptors of this host that a child inherits by fork and a new image keeps, and interval timers
// that an image keeps. Children and images begin at home, so copies are held here until the process
// is made here.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "acceptor/worker/part.h"
#include "base/fd.h"
#include "monitor/tracee/interval_timer.h"
#include "transport/wire.h"

namespace gpr::worker {

struct KeptFd {
    int number = -1;
    Fd copy;
    bool closes_on_exec = false;
};

class Inheritance {
public:
    explicit Inheritance(Worker& worker) : worker_(worker) {}

    static std::vector<KeptFd> descriptors_of(const RemoteProcess& process);
    void keep_descriptors(pid_t pid, std::vector<KeptFd> kept);
    // For a child that has a copy of its parent's memory.
    void keep_sources(pid_t pid, std::vector<std::shared_ptr<Fd>> sources);
    Task<void> keep_of_image(RemoteProcess& process);
    Task<Result<void>> give_kept(RemoteProcess& process, bool new_image);
    void forget(pid_t pid) { kept_.erase(pid); }

    void on_heir(wire::Heir::Reader heir);
    void on_kept_call(wire::KeptCall::Reader call);

private:
    struct Kept {
        std::vector<KeptFd> descriptors;
        std::vector<IntervalTimer> timers;  // of an image
        std::vector<std::shared_ptr<Fd>> sources;
    };

    Task<Result<void>> give_descriptors(RemoteProcess& process, const Kept& all, bool new_image);
    std::pair<int64_t, uint64_t> duplicate_kept(const KeptFd& kept, uint32_t number,
                                                capnp::List<uint64_t>::Reader args);
    std::pair<int64_t, uint64_t> make_kept_call(wire::KeptCall::Reader call);

    Worker& worker_;
    std::map<pid_t, Kept> kept_;  // for processes that have not been made here yet
};

}  // namespace gpr::worker
