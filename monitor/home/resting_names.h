// What processes at rest open and look for by name, where BPF watches that: their filter lets such
// calls pass, and a thread is stopped after one whose name may be that of an acceptor's file.
// docs/decisions/0082-names-are-looked-at-in-the-kernel.md
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <set>

#include "monitor/home/part.h"
#include "monitor/tracee/context_raw.h"

namespace gpr {
class NameWatch;
}  // namespace gpr

namespace gpr::home {

class RestingNames {
public:
    explicit RestingNames(Home& home);
    ~RestingNames();
    RestingNames(const RestingNames&) = delete;
    RestingNames& operator=(const RestingNames&) = delete;

    // Before a process begins.
    void begin(std::unique_ptr<NameWatch> watch);
    // Rules about files have changed.
    void renew();
    void join(const HomeProcess& process);
    void leave(const HomeProcess& process);
    // A thread that has stopped at the end of a call. False if the watch has not stopped it.
    bool takes_call(HomeThread& thread);
    // For a thread that has just been told to stop: it goes on to that stop, if it stands at the
    // end of a call.
    void let_go(pid_t tid);
    // The process is not split after all: its threads keep what they have opened.
    void give_up(HomeProcess& process);
    // The process is split, and its threads are to go on with these registers: those that have
    // opened an acceptor's file here make that call again.
    static void take_back_open(const HomeProcess& process, std::map<pid_t, ThreadContext>& stopped);

private:
    Home& home_;
    std::unique_ptr<NameWatch> watch_;
    std::set<pid_t> held_;  // threads that have opened an acceptor's file here, and stand
};

}  // namespace gpr::home
