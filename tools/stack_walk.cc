#include "tools/stack_walk.h"

#include <elfutils/libdwfl.h>

#include <algorithm>
#include <cstring>

namespace gpr {

namespace {

// What libdwfl asks while it walks.
struct Walk {
    const TracedThread* thread = nullptr;
    gpr_trace_registers registers{};
};

pid_t next_thread(Dwfl*, void*, void**) { return 0; }

bool get_thread(Dwfl*, pid_t, void* walk, void** thread) {
    *thread = walk;
    return true;
}

bool read_memory(Dwfl*, Dwarf_Addr address, Dwarf_Word* result, void* argument) {
    for (const TracedPart& part : static_cast<Walk*>(argument)->thread->call.parts) {
        const uint64_t beyond = address - part.about.address;
        if (part.about.kind != GPR_PART_STACK || beyond >= part.bytes.size() ||
            part.bytes.size() - beyond < sizeof *result) {
            continue;
        }
        std::memcpy(result, part.bytes.data() + beyond, sizeof *result);
        return true;
    }
    return false;
}

bool set_registers(Dwfl_Thread* thread, void* argument) {
    const gpr_trace_registers& known = static_cast<Walk*>(argument)->registers;
    Dwarf_Word words[17];
    static_assert(sizeof words == sizeof known);
    std::memcpy(words, &known, sizeof words);
    dwfl_thread_state_register_pc(thread, known.rip);
    return dwfl_thread_state_registers(thread, 0, 17, words);
}

const Dwfl_Thread_Callbacks thread_callbacks{next_thread,   get_thread, read_memory,
                                             set_registers, nullptr,    nullptr};

}  // namespace

std::vector<CallFrame> walk_stack(const ProcessSymbols& symbols, const TracedThread& thread) {
    const auto is_registers = [](const TracedPart& part) {
        return part.about.kind == GPR_PART_REGISTERS;
    };
    const auto found = std::ranges::find_if(thread.call.parts, is_registers);
    // libdwfl keeps the first walk's argument for good, so there is one for each set of symbols.
    static thread_local std::vector<std::pair<const ProcessSymbols*, std::unique_ptr<Walk>>> walks;
    auto known = std::ranges::find(walks, &symbols, [](const auto& each) { return each.first; });
    if (known == walks.end()) {
        walks.emplace_back(&symbols, std::make_unique<Walk>());
        known = std::prev(walks.end());
        dwfl_attach_state(symbols.dwfl(), nullptr, thread.pid, &thread_callbacks,
                          known->second.get());
    }
    Walk& walk = *known->second;
    walk.thread = &thread;
    if (found != thread.call.parts.end() && found->bytes.size() == sizeof walk.registers) {
        std::memcpy(&walk.registers, found->bytes.data(), sizeof walk.registers);
        if (auto frames = symbols.frames_of(thread.pid); !frames.empty()) return frames;
    }
    return {symbols.code_at(thread.call.instruction, false)};
}

}  // namespace gpr
