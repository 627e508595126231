#include "monitor/debug/core_file.h"

#include <elf.h>
#include <sys/mman.h>
#include <sys/procfs.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <sstream>
#include <vector>

namespace gpr::debug {

namespace {

constexpr size_t most_at_once = 1 << 20;            // bytes of memory
constexpr size_t most_mappings = 0xfff0;            // PN_XNUM would be needed for more
constexpr std::string_view deleted = " (deleted)";  // behind the names of files that have none
constexpr size_t legacy_state_bytes = 512;          // of the extended state: x87 and SSE

struct CoreMapping {
    Range range;
    int prot = 0;
    uint64_t file_offset = 0;
    std::string path;  // empty: no file
    uint64_t at = 0;   // in the core file
    std::vector<Range> content;
};

// Lines of /proc/PID/maps.
std::vector<CoreMapping> parse_maps(const std::string& text) {
    std::vector<CoreMapping> mappings;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        CoreMapping m;
        char prot[5] = "";
        unsigned long begin = 0, end = 0, offset = 0, inode = 0;
        int before_name = 0;
        const int told = std::sscanf(line.c_str(), "%lx-%lx %4s %lx %*x:%*x %lu %n", &begin, &end,
                                     prot, &offset, &inode, &before_name);
        if (told != 5) continue;
        m.range = {{begin}, {end}};
        m.prot = (prot[0] == 'r' ? PROT_READ : 0) | (prot[1] == 'w' ? PROT_WRITE : 0) |
                 (prot[2] == 'x' ? PROT_EXEC : 0);
        m.file_offset = offset;
        const std::string name = line.substr(static_cast<size_t>(before_name));
        if (inode != 0 && name.starts_with('/')) m.path = name;
        if (name.starts_with("[vvar") || name == "[vsyscall]") continue;
        mappings.push_back(std::move(m));
    }
    return mappings;
}

void put_note(std::string& notes, const char* owner, uint32_t type, std::string_view content) {
    const Elf64_Nhdr header{static_cast<uint32_t>(std::strlen(owner) + 1),
                            static_cast<uint32_t>(content.size()), type};
    const auto pad = [&] { notes.resize((notes.size() + 3) / 4 * 4); };
    notes.append(reinterpret_cast<const char*>(&header), sizeof header);
    notes.append(owner, header.n_namesz);
    pad();
    notes.append(content);
    pad();
}

template <class Struct>
std::string_view bytes_of(const Struct& from) {
    return {reinterpret_cast<const char*>(&from), sizeof from};
}

std::string_view bytes_of(const std::vector<std::byte>& from) {
    return {reinterpret_cast<const char*>(from.data()), from.size()};
}

elf_prstatus status_of(pid_t tid, const Registers& registers, const CoreIdentity& identity,
                       int signal) {
    elf_prstatus status{};
    status.pr_info.si_signo = signal;
    status.pr_cursig = static_cast<short>(signal);
    status.pr_pid = tid;
    status.pr_ppid = identity.parent;
    status.pr_pgrp = identity.group;
    status.pr_sid = identity.session;
    status.pr_fpvalid = !registers.extended.empty();
    static_assert(sizeof status.pr_reg == sizeof registers.general);
    std::memcpy(&status.pr_reg, &registers.general, sizeof status.pr_reg);
    return status;
}

elf_prpsinfo information_of(pid_t pid, const CoreIdentity& identity) {
    elf_prpsinfo information{};
    information.pr_sname = 'R';
    information.pr_uid = identity.user;
    information.pr_gid = identity.user_group;
    information.pr_pid = pid;
    information.pr_ppid = identity.parent;
    information.pr_pgrp = identity.group;
    information.pr_sid = identity.session;
    identity.name.copy(information.pr_fname, sizeof information.pr_fname - 1);
    identity.arguments.copy(information.pr_psargs, sizeof information.pr_psargs - 1);
    return information;
}

// NT_FILE: elf(5).
std::string files_of(const std::vector<CoreMapping>& mappings) {
    std::vector<uint64_t> numbers{0, 1};  // count; offsets are in bytes
    std::string names;
    for (const CoreMapping& m : mappings) {
        if (m.path.empty()) continue;
        numbers[0]++;
        numbers.insert(numbers.end(), {m.range.begin.value, m.range.end.value, m.file_offset});
        names.append(m.path.c_str(), m.path.size() + 1);
    }
    return std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * 8) + names;
}

std::string notes_of(const Debuggee& debuggee, const DebuggeeMemory& memory,
                     const CoreIdentity& identity, const std::vector<CoreMapping>& mappings) {
    std::string notes;
    const pid_t pid = debuggee.pid();
    std::vector<pid_t> tids = debuggee.threads();
    std::ranges::stable_partition(tids, [pid](pid_t tid) { return tid == pid; });
    for (const pid_t tid : tids) {
        const auto registers = debuggee.registers(tid);
        if (!registers) continue;
        const siginfo_t info = debuggee.signal_info(tid).value_or(siginfo_t{});
        put_note(notes, "CORE", NT_PRSTATUS,
                 bytes_of(status_of(tid, *registers, identity, info.si_signo)));
        if (tid == tids.front()) {
            put_note(notes, "CORE", NT_PRPSINFO, bytes_of(information_of(pid, identity)));
            put_note(notes, "CORE", NT_SIGINFO, bytes_of(info));
            put_note(notes, "CORE", NT_AUXV, memory.auxv());
            put_note(notes, "CORE", NT_FILE, files_of(mappings));
        }
        const std::string_view state = bytes_of(registers->extended);
        if (state.size() < legacy_state_bytes) continue;
        put_note(notes, "CORE", NT_FPREGSET, state.substr(0, legacy_state_bytes));
        put_note(notes, "LINUX", NT_X86_XSTATE, state);
    }
    return notes;
}

// The ELF header, and one program header for the notes and for each mapping.
std::string headers_of(std::vector<CoreMapping>& mappings, const std::string& notes,
                       uint64_t& size) {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_CORE;
    header.e_machine = EM_X86_64;
    header.e_version = EV_CURRENT;
    header.e_phoff = header.e_ehsize = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = static_cast<uint16_t>(mappings.size() + 1);
    std::string text(bytes_of(header));
    size = sizeof header + header.e_phnum * sizeof(Elf64_Phdr);
    Elf64_Phdr note{};
    note.p_type = PT_NOTE;
    note.p_offset = size;
    note.p_filesz = notes.size();
    note.p_align = 4;
    text += bytes_of(note);
    size = (size + notes.size() + page_size - 1) / page_size * page_size;
    for (CoreMapping& m : mappings) {
        Elf64_Phdr load{};
        load.p_type = PT_LOAD;
        load.p_offset = m.at = size;
        load.p_vaddr = m.range.begin.value;
        load.p_memsz = m.range.size();
        load.p_filesz = m.content.empty() ? 0 : m.content.back().end - m.range.begin;
        load.p_flags = (m.prot & PROT_READ ? PF_R : 0U) | (m.prot & PROT_WRITE ? PF_W : 0U) |
                       (m.prot & PROT_EXEC ? PF_X : 0U);
        load.p_align = page_size;
        size += load.p_filesz;
        text += bytes_of(load);
    }
    return text + notes;
}

Task<bool> put_content(DebuggeeMemory& memory, const CoreMapping& m, CoreSink& sink) {
    for (const Range& part : m.content) {
        for (Address at = part.begin; at < part.end;) {
            const size_t length = std::min<uint64_t>(most_at_once, part.end - at);
            std::string bytes(length, '\0');
            const size_t got = co_await memory.read(at, std::as_writable_bytes(std::span(bytes)));
            bytes.resize(got);
            if (got > 0) {
                bool taken = co_await sink.put(m.at + (at - m.range.begin), std::move(bytes));
                if (!taken) co_return false;
            }
            at = at + length;
        }
    }
    co_return true;
}

}  // namespace

namespace {

Task<Result<uint64_t>> put_core(Debuggee& debuggee, CoreIdentity identity, CoreSink& sink) {
    DebuggeeMemory& memory = debuggee.memory();
    std::vector<CoreMapping> mappings = parse_maps(memory.maps());
    if (mappings.empty()) co_return fail(ESRCH, "the process has just ended");
    if (mappings.size() > most_mappings) {
        co_return fail(fmt::format("the process has {} mappings, and a core file has room for {}",
                                   mappings.size(), most_mappings));
    }
    for (CoreMapping& m : mappings) {
        if (m.prot & PROT_READ)
            m.content = co_await memory.content_of(m.range, m.path.ends_with(deleted));
    }
    const std::string notes = notes_of(debuggee, memory, identity, mappings);
    uint64_t size = 0;
    std::string headers = headers_of(mappings, notes, size);
    bool taken = co_await sink.put(0, std::move(headers));
    for (size_t i = 0; taken && i < mappings.size(); i++) {
        taken = co_await put_content(memory, mappings[i], sink);
    }
    if (!taken) co_return fail("the core file cannot be written completely");
    co_return size;
}

}  // namespace

Task<Result<uint64_t>> write_core(Debuggee& debuggee, CoreIdentity identity, CoreSink& sink) {
    DebuggeeMemory& memory = debuggee.memory();
    co_await memory.gather(true);
    auto size = co_await put_core(debuggee, std::move(identity), sink);
    co_await memory.gather(false);
    co_return size;
}

}  // namespace gpr::debug
