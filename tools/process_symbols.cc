#include "tools/process_symbols.h"

#include <cxxabi.h>
#include <dwarf.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "base/fd.h"
#include "tools/sessions.h"

namespace gpr {

namespace {

constexpr size_t most_frames = 64;

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

// What has the name by now may be anything; to open a device may have an effect.
int find_elf(Dwfl_Module*, void**, const char* name, Dwarf_Addr, char** file, Elf**) {
    if (name[0] != '/') return -1;
    const Fd path(open(name, O_PATH | O_CLOEXEC));
    struct stat about {};
    if (!path || fstat(path.get(), &about) != 0 || !S_ISREG(about.st_mode)) return -1;
    Fd fd(open(fmt::format("/proc/self/fd/{}", path.get()).c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return -1;
    *file = strdup(name);
    return fd.release();
}

const Dwfl_Callbacks callbacks{find_elf, dwfl_standard_find_debuginfo, dwfl_offline_section_address,
                               nullptr};

std::string readable(const char* symbol) {
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> plain(
        abi::__cxa_demangle(symbol, nullptr, nullptr, &status), std::free);
    return status == 0 ? plain.get() : symbol;
}

struct Wanted {
    Range range;
    std::vector<std::string> names;
};

int add_variables(Dwfl_Module* module, void**, const char*, Dwarf_Addr, void* argument) {
    Wanted& wanted = *static_cast<Wanted*>(argument);
    const int count = dwfl_module_getsymtab(module);
    for (int i = 0; i < count; i++) {
        GElf_Sym symbol{};
        GElf_Addr at = 0;
        const char* name =
            dwfl_module_getsym_info(module, i, &symbol, &at, nullptr, nullptr, nullptr);
        const bool is_there =
            at < wanted.range.end.value && at + symbol.st_size > wanted.range.begin.value;
        if (name && is_there && GELF_ST_TYPE(symbol.st_info) == STT_OBJECT) {
            wanted.names.push_back(readable(name));
        }
    }
    return DWARF_CB_OK;
}

struct Walk {
    const ProcessSymbols& symbols;
    std::vector<CallFrame> frames;
};

int add_frame(Dwfl_Frame* state, void* argument) {
    Walk& walk = *static_cast<Walk*>(argument);
    Dwarf_Addr instruction = 0;
    bool is_activation = false;
    if (!dwfl_frame_pc(state, &instruction, &is_activation)) return DWARF_CB_ABORT;
    const bool is_call = !is_activation && !walk.frames.empty();
    walk.frames.push_back(walk.symbols.code_at(instruction, is_call));
    return walk.frames.size() < most_frames ? DWARF_CB_OK : DWARF_CB_ABORT;
}

}  // namespace

Result<> ProcessSymbols::read_files_as(uid_t user) {
    if (geteuid() != 0 || user == 0) return {};
    unsetenv("DEBUGINFOD_URLS");
    const passwd* entry = getpwuid(user);
    const gid_t group = entry ? entry->pw_gid : static_cast<gid_t>(-2);
    if (setgroups(0, nullptr) != 0 || setresgid(group, group, group) != 0 ||
        setresuid(user, user, user) != 0) {
        return fail(errno, fmt::format("cannot become user {}, whose files are to be read", user));
    }
    return {};
}

Result<ProcessSymbols> ProcessSymbols::of(const nlohmann::json& mappings) {
    std::string maps = maps_text(mappings);
    std::unique_ptr<Dwfl, EndDwfl> dwfl(dwfl_begin(&callbacks));
    const std::unique_ptr<FILE, int (*)(FILE*)> file(fmemopen(maps.data(), maps.size(), "r"),
                                                     fclose);
    if (!dwfl || !file) return fail("cannot look for the program's code: there is no memory");
    dwfl_report_begin(dwfl.get());
    const int error = dwfl_linux_proc_maps_report(dwfl.get(), file.get());
    dwfl_report_end(dwfl.get(), nullptr, nullptr);
    if (error != 0) return fail("the session's list of mappings is not understood");
    return ProcessSymbols(std::move(dwfl));
}

CallFrame ProcessSymbols::code_at(uint64_t instruction, bool is_call) const {
    CallFrame frame;
    frame.instruction = instruction;
    const uint64_t inside = is_call ? instruction - 1 : instruction;
    Dwfl_Module* module = dwfl_addrmodule(dwfl_.get(), inside);
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

std::vector<CallFrame> ProcessSymbols::frames_of(pid_t tid) const {
    Walk walk{*this, {}};
    dwfl_getthread_frames(dwfl_.get(), tid, add_frame, &walk);
    return std::move(walk.frames);
}

std::vector<std::string> ProcessSymbols::variables_in(Range range) const {
    Wanted wanted{range, {}};
    dwfl_getmodules(dwfl_.get(), add_variables, &wanted, 0);
    return wanted.names;
}

}  // namespace gpr
