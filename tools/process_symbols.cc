#include "tools/process_symbols.h"

#include <cxxabi.h>
#include <dwarf.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
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

int add_variables(Dwfl_Module* module, void**, const char*, Dwarf_Addr, void* argument) {
    ModuleVariables found;
    const int count = dwfl_module_getsymtab(module);
    for (int i = 0; i < count; i++) {
        GElf_Sym symbol{};
        GElf_Addr at = 0;
        const char* name =
            dwfl_module_getsym_info(module, i, &symbol, &at, nullptr, nullptr, nullptr);
        if (!name || symbol.st_size == 0 || GELF_ST_TYPE(symbol.st_info) != STT_OBJECT) continue;
        found.variables.push_back({at, at + symbol.st_size, name});
        found.longest = std::max(found.longest, symbol.st_size);
    }
    std::ranges::stable_sort(found.variables, {}, &ModuleVariables::Variable::begin);
    static_cast<std::vector<ModuleVariables>*>(argument)->push_back(std::move(found));
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

std::string ProcessSymbols::file_at(uint64_t address) const {
    Dwfl_Module* module = dwfl_addrmodule(dwfl_.get(), address);
    const char* file = module ? dwfl_module_info(module, nullptr, nullptr, nullptr, nullptr,
                                                 nullptr, nullptr, nullptr)
                              : nullptr;
    return file ? file : "";
}

CallFrame ProcessSymbols::code_at(uint64_t instruction, bool is_call) const {
    CallFrame frame;
    frame.instruction = instruction;
    const uint64_t inside = is_call ? instruction - 1 : instruction;
    Dwfl_Module* module = dwfl_addrmodule(dwfl_.get(), inside);
    if (!module) return frame;
    frame.file = file_at(inside);
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

// A library's memory without content of the file (.bss) is behind what libdwfl takes for its place,
// so each is asked.
std::vector<std::string> ProcessSymbols::variables_in(Range range) const {
    if (!variables_) {
        variables_.emplace();
        dwfl_getmodules(dwfl_.get(), add_variables, &*variables_, 0);
    }
    std::vector<std::string> names;
    for (const auto& [variables, longest] : *variables_) {
        const uint64_t first = range.begin.value - std::min(longest, range.begin.value);
        auto at = std::ranges::lower_bound(variables, first, {}, &ModuleVariables::Variable::begin);
        for (; at != variables.end() && at->begin < range.end.value; ++at) {
            if (at->end > range.begin.value) names.push_back(readable(at->name));
        }
    }
    return names;
}

}  // namespace gpr
