#include "tools/backtrace.h"

#include <elfutils/libdwfl.h>

#include <array>
#include <cstring>

#include "base/address.h"

namespace gpr {

namespace {

// By their numbers in DWARF, System V ABI for x86-64, figure 3.36; the last is the return address.
constexpr std::array dwarf_registers{"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
                                     "r9",  "r10", "r11", "r12", "r13", "r14", "r15", "rip"};

int value_of(char digit) { return digit >= 'a' ? digit - 'a' + 10 : digit - '0'; }

std::vector<uint8_t> bytes_of(const std::string& digits) {
    std::vector<uint8_t> bytes;
    if (digits.find_first_not_of("0123456789abcdef") != std::string::npos) return bytes;
    for (size_t i = 0; i + 1 < digits.size(); i += 2) {
        bytes.push_back(static_cast<uint8_t>(16 * value_of(digits[i]) + value_of(digits[i + 1])));
    }
    return bytes;
}

// What a process has in memory, page by page as it is asked for; but of the stack of a thread that
// was stopped what was on it then.
class ToldMemory {
public:
    ToldMemory(const ControlClient& client, pid_t pid) : client_(client), pid_(pid) {}

    void use_stack(uint64_t begin, std::vector<uint8_t> bytes) {
        stack_begin_ = begin;
        stack_ = std::move(bytes);
    }

    bool read_word(uint64_t address, uint64_t& word) {
        const uint64_t beyond = address - stack_begin_;
        if (beyond < stack_.size() && stack_.size() - beyond >= sizeof word) {
            std::memcpy(&word, stack_.data() + beyond, sizeof word);
            return true;
        }
        std::array<uint8_t, sizeof word> bytes{};
        for (size_t i = 0; i < bytes.size(); i++) {
            const std::vector<uint8_t>& page = page_at((address + i) & page_mask);
            const uint64_t offset = (address + i) % page_size;
            if (offset >= page.size()) return false;
            bytes[i] = page[offset];
        }
        std::memcpy(&word, bytes.data(), sizeof word);
        return true;
    }

private:
    const std::vector<uint8_t>& page_at(uint64_t address) {
        const auto known = pages_.find(address);
        if (known != pages_.end()) return known->second;
        std::vector<uint8_t>& page = pages_[address];
        if (gives_up_) return page;
        const auto answer = client_.ask(
            {{"want", "memory"}, {"pid", pid_}, {"address", address}, {"bytes", page_size}});
        if (answer) page = bytes_of(text_at(*answer, "bytes"));
        gives_up_ |= !answer;  // of a session that does not answer each would take seconds
        return page;
    }

    const ControlClient& client_;
    pid_t pid_;
    bool gives_up_ = false;
    std::map<uint64_t, std::vector<uint8_t>> pages_;
    uint64_t stack_begin_ = 0;
    std::vector<uint8_t> stack_;
};

// What libdwfl asks while it walks.
struct Walk {
    ToldMemory memory;
    std::map<pid_t, nlohmann::json> registers;  // that are known, by thread
    std::map<pid_t, std::vector<uint8_t>> stacks;
};

// Nobody goes through all of them: get_thread() is asked for each.
pid_t next_thread(Dwfl*, void*, void**) { return 0; }

bool get_thread(Dwfl*, pid_t tid, void* walk, void** thread) {
    auto& known = static_cast<Walk*>(walk)->registers;
    const auto found = known.find(tid);
    if (found != known.end()) *thread = &found->second;
    return found != known.end();
}

bool read_memory(Dwfl*, Dwarf_Addr address, Dwarf_Word* result, void* walk) {
    uint64_t word = 0;
    if (!static_cast<Walk*>(walk)->memory.read_word(address, word)) return false;
    *result = word;
    return true;
}

// Only those that are known: a frame that needs others cannot be left.
bool set_registers(Dwfl_Thread* thread, void* registers) {
    const nlohmann::json& known = *static_cast<const nlohmann::json*>(registers);
    for (size_t i = 0; i < dwarf_registers.size(); i++) {
        if (object_at(known, dwarf_registers[i]).is_null()) continue;
        const Dwarf_Word value = word_at(known, dwarf_registers[i]);
        if (!dwfl_thread_state_registers(thread, static_cast<int>(i), 1, &value)) return false;
    }
    dwfl_thread_state_register_pc(thread, word_at(known, "rip"));
    return true;
}

const Dwfl_Thread_Callbacks thread_callbacks{next_thread,   get_thread, read_memory,
                                             set_registers, nullptr,    nullptr};

}  // namespace

Result<StandingProcess> standing_process(const ListedSession& session, pid_t pid) {
    const nlohmann::json about{{"want", "mappings"}, {"pid", pid}, {"resident", false}};
    GPR_TRY(nlohmann::json mappings, session.client.ask(about));
    GPR_TRY(nlohmann::json told, session.client.ask({{"want", "registers"}, {"pid", pid}}));
    return StandingProcess{pid, std::move(mappings), std::move(told)};
}

Result<Backtraces> backtraces_of(const ListedSession& session, const StandingProcess& process) {
    const pid_t pid = process.pid;
    Backtraces all;
    GPR_TRY(const ProcessSymbols symbols,
            ProcessSymbols::of(object_at(process.mappings, "mappings")));
    Dwfl* dwfl = symbols.dwfl();
    Walk walk{ToldMemory(session.client, pid), {}, {}};
    for (const nlohmann::json& each : object_at(process.registers, "threads")) {
        const nlohmann::json& registers = object_at(each, "registers");
        if (word_at(registers, "rip") == 0) continue;
        const auto tid = static_cast<pid_t>(number_at(each, "tid"));
        walk.registers[tid] = registers;
        walk.stacks[tid] = bytes_of(text_at(each, "stack"));
    }
    const bool walks = dwfl_attach_state(dwfl, nullptr, pid, &thread_callbacks, &walk);
    for (const auto& [tid, registers] : walk.registers) {
        walk.memory.use_stack(word_at(registers, "rsp"), walk.stacks[tid]);
        if (walks) all[tid] = symbols.frames_of(tid);
        if (all[tid].empty()) all[tid] = {symbols.code_at(word_at(registers, "rip"), false)};
    }
    return all;
}

}  // namespace gpr
