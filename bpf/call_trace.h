// Reports the system calls and signals of all threads that this process traces, without stopping
// them. The kernel's part is call_trace.bpf.c. While a trace exists, it adds some 100 ns to every
// system call on this host, and about a microsecond to those that it reports.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "bpf/call_trace_layout.h"
#include "bpf/loaded_programs.h"

struct ring_buffer;

namespace gpr {

// As the threads know themselves, in their innermost namespace, or as their tracer does.
enum class TracedIds { own, of_tracer };

// What to take of the memory of each call, by its number.
using TracedCalls = std::array<gpr_traced_call, GPR_TRACED_CALLS>;

class CallTrace {
public:
    // Needs CAP_BPF and CAP_PERFMON; takes some 20 ms.
    static Result<std::unique_ptr<CallTrace>> load(const gpr_trace_order& order,
                                                   const TracedCalls& calls, TracedIds ids);
    ~CallTrace();
    CallTrace(const CallTrace&) = delete;
    CallTrace& operator=(const CallTrace&) = delete;

    // Becomes readable when much is waiting; otherwise look now and then.
    [[nodiscard]] int fd() const { return events_; }
    // Hands over what is waiting, in order, event by event, as long as `tell` returns true.
    void fetch(const std::function<bool(std::span<const std::byte> event)>& tell);
    // How many events found no room since the last time.
    uint64_t take_lost();

private:
    CallTrace() = default;
    Result<> open(const gpr_trace_order& order, const TracedCalls& calls, TracedIds ids);
    Result<> learn_own_id();
    static int on_event(void* self, void* data, size_t size);

    std::optional<LoadedPrograms> programs_;
    std::vector<Fd> attached_;
    ring_buffer* ring_ = nullptr;
    int events_ = -1;                         // of programs_
    gpr_trace_settings* settings_ = nullptr;  // mapped
    uint64_t lost_seen_ = 0;
    const std::function<bool(std::span<const std::byte>)>* tell_ = nullptr;  // during fetch()
};

}  // namespace gpr
