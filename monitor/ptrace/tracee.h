// A thread of a session that another one traces with ptrace(2), as its tracer sees it. The kernel's
// tracer is the monitor, which hands on what the tracer asks for.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>

namespace gpr::ptrace {

// A status as wait4(2) gives it.
constexpr int stop_status(int signal, int event = 0) { return event << 16 | signal << 8 | 0x7f; }
constexpr int signal_in(int status) { return status >> 8 & 0xff; }
constexpr int event_in(int status) { return status >> 16; }

inline constexpr int event_stop = 128;             // PTRACE_EVENT_STOP
inline constexpr int call_stop_bit = 0x80;         // of the signal, with PTRACE_O_TRACESYSGOOD
inline constexpr uint64_t all_options = 0x3000ff;  // PTRACE_O_*

struct Tracee {
    enum class State : uint8_t {
        runs,
        stopped,
        listens,  // stopped by job control, with PTRACE_LISTEN
        ended,    // and the tracer has not waited for it
    };
    // A signal of ours, which the kernel of a native tracee would have sent.
    enum class Expected : uint8_t { nothing, stop_at_birth, stop_of_attach, trap_after_exec };

    pid_t tid = 0;
    pid_t process = 0;
    pid_t tracer = 0;           // a thread
    pid_t tracers_process = 0;  // of which any thread may wait
    bool is_child = false;      // of the tracer's process, which is told of its end by the kernel
    bool seized = false;        // by PTRACE_SEIZE
    uint64_t options = 0;
    State state = State::runs;
    int status = 0;               // of its stop or end
    bool waited_for = false;      // the tracer has seen this
    bool by_job_control = false;  // it is in a group-stop
    bool newborn = false;         // its first stop is still to come
    bool to_interrupt = false;    // by PTRACE_INTERRUPT
    bool held = false;            // it is about to end, and does so when it has been waited for
    bool knows_end = false;       // it has stopped with PTRACE_EVENT_EXIT
    Expected expected = Expected::nothing;
    std::function<void()> then;  // instead of resuming it

    // Its end is told by us, and not by the kernel.
    [[nodiscard]] bool end_is_ours() const { return !is_child || tid != process; }
    [[nodiscard]] bool has_news() const {
        return !waited_for && (state == State::stopped || state == State::ended);
    }
    [[nodiscard]] bool has(uint64_t option) const { return options & option; }
};

}  // namespace gpr::ptrace
