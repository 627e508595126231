#include "bpf/call_trace.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "call_trace_image.h"

namespace gpr {

Result<std::unique_ptr<CallTrace>> CallTrace::load(const gpr_trace_order& order,
                                                   const TracedCalls& calls, TracedIds ids) {
    std::unique_ptr<CallTrace> trace(new CallTrace);
    GPR_CHECK(trace->open(order, calls, ids));
    return trace;
}

Result<> CallTrace::open(const gpr_trace_order& order, const TracedCalls& calls, TracedIds ids) {
    GPR_TRY(programs_, LoadedPrograms::load(call_trace_image));
    void* at = mmap(nullptr, sizeof *settings_, PROT_READ | PROT_WRITE, MAP_SHARED,
                    programs_->map("settings"), 0);
    if (at == MAP_FAILED) return fail(errno, "cannot map the settings of the trace of calls");
    settings_ = static_cast<gpr_trace_settings*>(at);
    settings_->own_ids = ids == TracedIds::own;
    settings_->string_bytes = std::min<uint32_t>(order.string_bytes, GPR_TRACED_BYTES_MAX);
    settings_->stack_bytes = order.stack_bytes;
    settings_->signals = order.signals;
    const int traced = programs_->map("traced_calls");
    for (uint32_t number = 0; number < calls.size(); number++) {
        if (bpf_map_update_elem(traced, &number, &calls[number], BPF_ANY) != 0) {
            return fail(errno, "cannot say which calls are traced");
        }
    }
    GPR_CHECK(learn_own_id());
    events_ = programs_->map("events");
    ring_ = ring_buffer__new(events_, on_event, this, nullptr);
    if (!ring_) return fail(errno, "cannot map the ring of traced calls");
    for (const char* name : {"traced_call_begins", "traced_call_ends", "traced_signal"}) {
        GPR_TRY(auto attached, programs_->attach(name));
        attached_.push_back(std::move(attached));
    }
    return {};
}

// We may be in a pid namespace and not know the id that the kernel's part compares with.
Result<> CallTrace::learn_own_id() {
    LIBBPF_OPTS(bpf_test_run_opts, options);
    const int program = programs_->program("who_asks");
    if (bpf_prog_test_run_opts(program, &options) != 0 || settings_->tracer == 0) {
        return fail(errno, "cannot find out which threads are to be traced");
    }
    return {};
}

CallTrace::~CallTrace() {
    ring_buffer__free(ring_);
    if (settings_) munmap(settings_, sizeof *settings_);
}

int CallTrace::on_event(void* self, void* data, size_t size) {
    const auto& tell = *static_cast<CallTrace*>(self)->tell_;
    return tell({static_cast<const std::byte*>(data), size}) ? 0 : -1;
}

void CallTrace::fetch(const std::function<bool(std::span<const std::byte>)>& tell) {
    tell_ = &tell;
    ring_buffer__consume(ring_);
    tell_ = nullptr;
}

uint64_t CallTrace::take_lost() {
    const uint64_t lost = __atomic_load_n(&settings_->lost, __ATOMIC_RELAXED);
    return lost - std::exchange(lost_seen_, lost);
}

}  // namespace gpr
