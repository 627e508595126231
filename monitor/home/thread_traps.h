// What the processor and the kernel watch for the debugger of a process: each of its threads is
// given the same, on each node where it runs.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>

#include "base/address.h"
#include "monitor/debug/hardware_breakpoints.h"
#include "monitor/home/part.h"
#include "monitor/tracee/debug_traps.h"

namespace gpr::home {

class ThreadTraps {
public:
    explicit ThreadTraps(Home& home) : home_(home) {}

    debug::HardwareBreakpoints& hardware() { return hardware_; }
    void stop_at_calls(bool on) { calls_ = on; }
    // Stops the thread once more before that instruction. False if no register is free.
    bool stop_at(pid_t tid, Address instruction);
    void forget_stop_at(pid_t tid) { returns_.erase(tid); }
    // Whether these bits of debug registers are of stop_at().
    [[nodiscard]] bool is_there(pid_t tid, uint8_t hits) const;

    [[nodiscard]] bool any() const { return calls_ || hardware_.traps().control != 0; }
    // From now on nothing stops the threads.
    void clear();
    // Its threads have new kernel state in a new image.
    void on_exec();

    // Tells the acceptors, which give it to the threads that arrive from now on.
    void tell(pid_t pid) const;
    // The thread is in a ptrace stop here.
    void equip(pid_t tid);
    // For a process whose threads are in their stubs here. `this` must outlive the task.
    Task<void> equip_all(pid_t pid);
    void on_thread_end(pid_t tid);

private:
    [[nodiscard]] DebugTraps wanted(pid_t tid) const;
    [[nodiscard]] bool is_equipped(pid_t tid) const;
    Task<void> stop_and_equip(pid_t pid, pid_t tid);

    Home& home_;
    debug::HardwareBreakpoints hardware_;
    bool calls_ = false;
    std::map<pid_t, Address> returns_;
    std::map<pid_t, DebugTraps> given_;  // to the kernel threads here
};

}  // namespace gpr::home
