#include "bpf/call_watch.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <fstream>

#include "base/fd.h"
#include "call_watch_image.h"

namespace gpr {

namespace {

// Returns the word that a thread waits for if it is in a futex call, else 0.
uint64_t waited_word(const std::filesystem::path& thread) {
    std::ifstream file(thread / "syscall");
    std::string number, address;
    if (!(file >> number >> address)) return 0;
    return number == std::to_string(SYS_futex) ? std::stoull(address, nullptr, 16) : 0;
}

}  // namespace

WaiterSummary WaiterSummary::everything() {
    WaiterSummary all;
    all.words.fill(~uint64_t{0});
    return all;
}

bool WaiterSummary::may_wait(uint64_t address) const {
    uint32_t bit = gpr_waiter_bit(address);
    return words[bit / 64] & (uint64_t{1} << (bit % 64));
}

Result<std::unique_ptr<CallWatch>> CallWatch::load() {
    std::unique_ptr<CallWatch> watch(new CallWatch);
    GPR_CHECK(watch->open());
    return watch;
}

Result<> CallWatch::open() {
    GPR_TRY(programs_, LoadedPrograms::load(call_watch_image));
    for (const char* name : {"call_begins", "call_ends"}) {
        GPR_TRY(auto attached, programs_->attach(name));
        attached_.push_back(std::move(attached));
    }
    members_ = programs_->map("members");
    wakes_ = programs_->map("wakes");
    spilled_ = programs_->map("spilled");
    void* at = mmap(nullptr, sizeof *state_, PROT_READ | PROT_WRITE, MAP_SHARED,
                    programs_->map("state"), 0);
    if (at == MAP_FAILED) return fail(errno, "cannot map the state of the watch over calls");
    state_ = static_cast<gpr_futex_state*>(at);
    set_elsewhere(WaiterSummary::everything());
    ring_ = ring_buffer__new(wakes_, on_wake, this, nullptr);
    if (!ring_) return fail(errno, "cannot map the ring of the watch over calls");
    return {};
}

CallWatch::~CallWatch() {
    ring_buffer__free(ring_);
    if (state_) munmap(state_, sizeof *state_);
}

Result<> CallWatch::join(pid_t pid, pid_t name, StopsAtEnd stops) {
    Fd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (!process) return fail(errno, fmt::format("cannot open process {}", pid));
    int key = process.get();
    gpr_member member{static_cast<uint32_t>(name), 0};
    if (stops.openers) member.stops |= gpr_stops_openers;
    if (stops.interrupted) member.stops |= gpr_stops_interrupted;
    if (bpf_map_update_elem(members_, &key, &member, BPF_ANY) != 0) {
        return fail(errno, fmt::format("cannot watch the calls of process {}", pid));
    }
    std::error_code gone;
    auto threads = fmt::format("/proc/{}/task", pid);
    for (std::filesystem::directory_iterator thread(threads, gone), end; !gone && thread != end;
         thread.increment(gone)) {
        if (uint64_t word = waited_word(thread->path()); word != 0) count_for_ever(word);
    }
    return {};
}

WaiterSummary CallWatch::waiting() const {
    if (__atomic_load_n(&state_->waiting_anywhere, __ATOMIC_RELAXED) != 0) {
        return WaiterSummary::everything();
    }
    WaiterSummary summary;
    for (size_t bit = 0; bit < GPR_WAITER_BITS; bit++) {
        uint64_t some = __atomic_load_n(&state_->waiting[bit], __ATOMIC_RELAXED) != 0;
        summary.words[bit / 64] |= some << (bit % 64);
    }
    return summary;
}

void CallWatch::count_for_ever(uint64_t address) {
    __atomic_fetch_add(&state_->waiting[gpr_waiter_bit(address)], 1, __ATOMIC_SEQ_CST);
}

void CallWatch::set_elsewhere(const WaiterSummary& summary) {
    for (size_t i = 0; i < summary.words.size(); i++) {
        __atomic_store_n(&state_->elsewhere[i], summary.words[i], __ATOMIC_SEQ_CST);
    }
}

int CallWatch::on_wake(void* self, void* data, size_t) {
    const auto& wake = *static_cast<const gpr_futex_wake*>(data);
    if (wake.address == 0) return 0;
    auto count = static_cast<int32_t>(std::min<uint32_t>(wake.count, INT_MAX));
    (*static_cast<CallWatch*>(self)->tell_)({static_cast<pid_t>(wake.pid),
                                             static_cast<pid_t>(wake.tid), wake.address, count,
                                             wake.bitset});
    return 0;
}

void CallWatch::fetch(const std::function<void(const WatchedWake&)>& tell) {
    tell_ = &tell;
    ring_buffer__consume(ring_);
    uint32_t spilled = __atomic_load_n(&state_->spilled, __ATOMIC_SEQ_CST);
    if (spilled != spilled_seen_) fetch_spilled();
    spilled_seen_ = spilled;
    tell_ = nullptr;
}

// A spilled wake has lost its count, so it wakes all waiters.
void CallWatch::fetch_spilled() {
    gpr_spilled_key key{};
    while (bpf_map_get_next_key(spilled_, nullptr, &key) == 0) {
        bpf_map_delete_elem(spilled_, &key);
        (*tell_)({static_cast<pid_t>(key.pid), 0, key.address, INT_MAX, key.bitset});
    }
}

}  // namespace gpr
