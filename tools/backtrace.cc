#include "tools/backtrace.h"

#include <cxxabi.h>
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>

#include "base/address.h"

namespace gpr {

namespace {

constexpr size_t most_frames = 64;
// By their numbers in DWARF, System V ABI for x86-64, figure 3.36; the last is the return address.
constexpr std::array dwarf_registers{"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
                                     "r9",  "r10", "r11", "r12", "r13", "r14", "r15", "rip"};

uint64_t word_at(const nlohmann::json& object, const char* key) {
    const nlohmann::json& value = object_at(object, key);
    return value.is_number_unsigned() ? value.get<uint64_t>() : 0;
}

int value_of(char digit) { return digit >= 'a' ? digit - 'a' + 10 : digit - '0'; }

// What a process has in memory, page by page as it is asked for.
class ToldMemory {
public:
    ToldMemory(const ControlClient& client, pid_t pid) : client_(client), pid_(pid) {}

    bool read_word(uint64_t address, uint64_t& word) {
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
        const auto answer = client_.ask(
            {{"want", "memory"}, {"pid", pid_}, {"address", address}, {"bytes", page_size}});
        const std::string digits = answer ? text_at(*answer, "bytes") : "";
        const bool good = digits.find_first_not_of("0123456789abcdef") == std::string::npos;
        for (size_t i = 0; good && i + 1 < digits.size() && page.size() < page_size; i += 2) {
            page.push_back(
                static_cast<uint8_t>(16 * value_of(digits[i]) + value_of(digits[i + 1])));
        }
        return page;
    }

    const ControlClient& client_;
    pid_t pid_;
    std::map<uint64_t, std::vector<uint8_t>> pages_;
};

// The list of mappings as libdwfl reads it; a file's inode is only told apart from others.
std::string maps_text(const nlohmann::json& mappings) {
    std::map<std::string, size_t> inodes;
    std::string text;
    for (const nlohmann::json& each : mappings) {
        const std::string file = text_at(each, "file");
        const size_t inode =
            file.starts_with('/') ? inodes.emplace(file, inodes.size() + 1).first->second : 0;
        text += fmt::format("{:x}-{:x} {} {:x} 00:01 {} {}\n", word_at(each, "begin"),
                            word_at(each, "end"), text_at(each, "protection"),
                            word_at(each, "offset"), inode, inode == 0 ? "" : file);
    }
    return text;
}

// What libdwfl asks while it walks.
struct Walk {
    ToldMemory memory;
    const nlohmann::json* registers = nullptr;  // of the thread
    pid_t tid = 0;
    Dwfl* dwfl = nullptr;
    std::vector<CallFrame> frames;
};

int find_elf(Dwfl_Module*, void**, const char* name, Dwarf_Addr, char** file, Elf**) {
    const int fd = name[0] == '/' ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) *file = strdup(name);
    return fd;
}

pid_t next_thread(Dwfl*, void* walk, void** thread) {
    if (*thread) return 0;
    *thread = walk;
    return static_cast<Walk*>(walk)->tid;
}

bool read_memory(Dwfl*, Dwarf_Addr address, Dwarf_Word* result, void* walk) {
    uint64_t word = 0;
    if (!static_cast<Walk*>(walk)->memory.read_word(address, word)) return false;
    *result = word;
    return true;
}

// Only those that are known: a frame that needs others cannot be left.
bool set_registers(Dwfl_Thread* thread, void* walk) {
    const nlohmann::json& known = *static_cast<Walk*>(walk)->registers;
    for (size_t i = 0; i < dwarf_registers.size(); i++) {
        if (object_at(known, dwarf_registers[i]).is_null()) continue;
        const Dwarf_Word value = word_at(known, dwarf_registers[i]);
        if (!dwfl_thread_state_registers(thread, static_cast<int>(i), 1, &value)) return false;
    }
    dwfl_thread_state_register_pc(thread, word_at(known, "rip"));
    return true;
}

const Dwfl_Callbacks callbacks{find_elf, dwfl_standard_find_debuginfo, dwfl_offline_section_address,
                               nullptr};
const Dwfl_Thread_Callbacks thread_callbacks{next_thread,   nullptr, read_memory,
                                             set_registers, nullptr, nullptr};

std::string readable(const char* symbol) {
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> plain(
        abi::__cxa_demangle(symbol, nullptr, nullptr, &status), std::free);
    return status == 0 ? plain.get() : symbol;
}

CallFrame frame_at(Dwfl* dwfl, uint64_t instruction, bool is_call) {
    CallFrame frame;
    frame.instruction = instruction;
    const uint64_t inside = is_call ? instruction - 1 : instruction;
    Dwfl_Module* module = dwfl_addrmodule(dwfl, inside);
    if (!module) return frame;
    const char* file =
        dwfl_module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
    frame.file = file ? file : "";
    GElf_Sym symbol{};
    GElf_Off beyond = 0;
    const char* name =
        dwfl_module_addrinfo(module, inside, &beyond, &symbol, nullptr, nullptr, nullptr);
    if (name) frame.symbol = fmt::format("{}+{:#x}", readable(name), beyond + (is_call ? 1 : 0));
    int line = 0;
    Dwfl_Line* found = dwfl_module_getsrc(module, inside);
    const char* source =
        found ? dwfl_lineinfo(found, nullptr, &line, nullptr, nullptr, nullptr) : nullptr;
    if (source) frame.source = fmt::format("{}:{}", source, line);
    return frame;
}

int add_frame(Dwfl_Frame* state, void* argument) {
    Walk& walk = *static_cast<Walk*>(argument);
    Dwarf_Addr instruction = 0;
    bool is_activation = false;
    if (!dwfl_frame_pc(state, &instruction, &is_activation)) return DWARF_CB_ABORT;
    const bool is_call = !is_activation && !walk.frames.empty();
    walk.frames.push_back(frame_at(walk.dwfl, instruction, is_call));
    return walk.frames.size() < most_frames ? DWARF_CB_OK : DWARF_CB_ABORT;
}

struct EndDwfl {
    void operator()(Dwfl* dwfl) const { dwfl_end(dwfl); }
};

Result<std::unique_ptr<Dwfl, EndDwfl>> modules_of(const std::string& maps) {
    std::unique_ptr<Dwfl, EndDwfl> dwfl(dwfl_begin(&callbacks));
    const std::unique_ptr<FILE, int (*)(FILE*)> file(
        fmemopen(const_cast<char*>(maps.data()), maps.size(), "r"), fclose);
    if (!dwfl || !file) return fail("cannot look for the program's code: there is no memory");
    dwfl_report_begin(dwfl.get());
    const int error = dwfl_linux_proc_maps_report(dwfl.get(), file.get());
    dwfl_report_end(dwfl.get(), nullptr, nullptr);
    if (error != 0) return fail("the session's list of mappings is not understood");
    return dwfl;
}

}  // namespace

Result<Backtraces> backtraces_of(const ListedSession& session, pid_t pid) {
    const nlohmann::json about{{"want", "mappings"}, {"pid", pid}, {"resident", false}};
    GPR_TRY(const nlohmann::json mappings, session.client.ask(about));
    GPR_TRY(const nlohmann::json told, session.client.ask({{"want", "registers"}, {"pid", pid}}));
    const std::string maps = maps_text(object_at(mappings, "mappings"));
    Backtraces all;
    Walk walk{ToldMemory(session.client, pid), nullptr, 0, nullptr, {}};
    for (const nlohmann::json& each : object_at(told, "threads")) {
        const nlohmann::json& registers = object_at(each, "registers");
        if (word_at(registers, "rip") == 0) continue;
        // A state is of one thread: libdwfl asks for no other.
        GPR_TRY(const auto dwfl, modules_of(maps));
        walk.dwfl = dwfl.get();
        walk.registers = &registers;
        walk.tid = static_cast<pid_t>(number_at(each, "tid"));
        walk.frames.clear();
        if (dwfl_attach_state(dwfl.get(), nullptr, pid, &thread_callbacks, &walk)) {
            dwfl_getthread_frames(dwfl.get(), walk.tid, add_frame, &walk);
        }
        if (walk.frames.empty()) {
            walk.frames.push_back(frame_at(dwfl.get(), word_at(registers, "rip"), false));
        }
        all[walk.tid] = walk.frames;
    }
    return all;
}

}  // namespace gpr
