// Threads and processes begin: as the kernel tells of children of threads at home, and as threads
// at the acceptor ask for them.
#pragma once

#include <sys/types.h>

#include <map>

#include "monitor/home/part.h"
#include "monitor/home/process.h"

namespace gpr::home {

class Births {
public:
    explicit Births(Home& home) : home_(home) {}

    HomeThread& add_thread(HomeProcess& process, pid_t tid);
    void on_birth(HomeThread& parent, int event);
    Task<void> spawn_thread(HomeProcess& process, HomeThread& thread, Frame frame);
    Task<void> spawn_process(HomeProcess& process, HomeThread& thread, Frame frame);
    // A thread at the acceptor asked for a child, which its shadow, the parent, makes now.
    void expect(pid_t parent, Birth birth);
    // The call is over. True: there was no child.
    bool expect_no_more(pid_t parent);

private:
    void add_to_process(HomeThread& parent, pid_t tid, bool helper);
    void join_owner(const HomeProcess& guest);
    HomeThread& add_process(HomeThread& parent, pid_t tid, int event, const Birth* planned,
                            bool shares);
    void begin_process(HomeThread& parent, HomeThread& first, Birth* planned, bool shares);

    Home& home_;
    std::map<pid_t, Birth> births_;  // by parent tid, while its clone runs
};

}  // namespace gpr::home
