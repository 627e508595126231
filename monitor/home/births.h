// Births of threads and processes: those that the kernel reports of threads at home, and those that
// threads at an acceptor ask for.
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
    // For a thread that is being killed: finds children whose birth the kernel has not reported.
    void find_untold(HomeThread& parent);
    Task<void> spawn_thread(HomeProcess& process, HomeThread& thread, Frame frame);
    Task<void> spawn_process(HomeProcess& process, HomeThread& thread, Frame frame);
    // A thread at the acceptor has asked for a child; its shadow, the parent, is about to make it.
    void expect(pid_t parent, Birth birth);
    // The call has ended. True if there was no child.
    bool expect_no_more(pid_t parent);

private:
    void add_born(HomeThread& parent, pid_t tid, int event);
    void add_to_process(HomeThread& parent, pid_t tid, bool helper);
    void join_owner(const HomeProcess& child);
    HomeThread& add_process(HomeThread& parent, pid_t tid, int event, const Birth* planned,
                            bool shares);
    void begin_process(HomeThread& parent, HomeThread& first, Birth* planned, bool shares);

    Home& home_;
    std::map<pid_t, Birth> births_;  // by the parent's tid, while its clone is under way
};

}  // namespace gpr::home
