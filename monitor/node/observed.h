// What an acceptor tells about its part of a running session, and how that is sent.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "base/latency.h"
#include "monitor/node/usage_wire.h"
#include "monitor/tracee/thread_status.h"
#include "transport/gpr.capnp.h"

namespace gpr {

// These limits keep an answer within the size of a message.
inline constexpr size_t most_observed_threads = 2048;
inline constexpr size_t most_observed_ranges = 4096;
inline constexpr size_t most_standings = 512;       // threads with their registers,
inline constexpr size_t most_observed_stacks = 24;  // and with their stacks

struct ObservedThread {
    pid_t pid = 0, tid = 0;  // of the program
    bool here = false;       // on the node that answers
    ThreadStatus status;
    uint64_t faults = 0, pages = 0;
    bool waits_for_page = false;
    std::optional<Standing> standing;  // if it was stopped for this
};

struct Observed {
    bool answered = false;  // else the acceptor is lost
    Usage used;             // by processes that have not ended
    LatencyHistogram fault_waits;
    std::vector<ObservedThread> threads;
    std::vector<uint64_t> resident;  // pages of each range in question
};

inline void observed_to_wire(const ObservedThread& thread, wire::ObservedThread::Builder to) {
    to.setPid(thread.pid);
    to.setTid(thread.tid);
    to.setHere(thread.here);
    to.setLetter(static_cast<uint8_t>(thread.status.letter));
    to.setWaitsIn(thread.status.waits_in);
    to.setCall(thread.status.call);
    to.setCpuNs(thread.status.cpu_ns);
    to.setFaults(thread.faults);
    to.setPages(thread.pages);
    to.setWaitsForPage(thread.waits_for_page);
    to.setInstruction(thread.status.instruction);
    to.setStackPointer(thread.status.stack_pointer);
    if (!thread.standing) return;
    const auto& [registers, stack] = *thread.standing;
    to.setRegisters({reinterpret_cast<const uint8_t*>(&registers), sizeof registers});
    to.setStack({reinterpret_cast<const uint8_t*>(stack.data()), stack.size()});
}

inline Observed observed_from_wire(wire::ObserveAnswer::Reader answer) {
    Observed observed;
    observed.answered = true;
    observed.used = usage_from_wire(answer.getUsed());
    const auto waits = answer.getFaultWaits();
    auto& counts = observed.fault_waits.counts;
    if (waits.size() == counts.size() + 1) {
        for (unsigned i = 0; i < counts.size(); i++) counts[i] = waits[i];
        observed.fault_waits.sum_ns = waits[static_cast<unsigned>(counts.size())];
    }
    for (const auto& from : answer.getThreads()) {
        ObservedThread thread;
        thread.pid = from.getPid();
        thread.tid = from.getTid();
        thread.here = from.getHere();
        thread.status.letter = static_cast<char>(from.getLetter());
        thread.status.waits_in = from.getWaitsIn().cStr();
        thread.status.call = from.getCall();
        thread.status.cpu_ns = from.getCpuNs();
        thread.faults = from.getFaults();
        thread.pages = from.getPages();
        thread.waits_for_page = from.getWaitsForPage();
        thread.status.instruction = from.getInstruction();
        thread.status.stack_pointer = from.getStackPointer();
        if (const auto registers = from.getRegisters();
            registers.size() == sizeof(user_regs_struct)) {
            Standing& standing = thread.standing.emplace();
            std::memcpy(&standing.registers, registers.begin(), registers.size());
            const auto stack = from.getStack();
            const auto* bytes = reinterpret_cast<const std::byte*>(stack.begin());
            standing.stack.assign(bytes, bytes + std::min(stack.size(), most_stack_bytes));
        }
        observed.threads.push_back(std::move(thread));
    }
    for (const uint64_t pages : answer.getResident()) observed.resident.push_back(pages);
    return observed;
}

}  // namespace gpr
