#include "monitor/node/mapping_query.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <span>

#include "base/address.h"
#include "base/fd.h"

namespace gpr {

namespace {

constexpr uint64_t of_permissions = PROCMAP_QUERY_VMA_READABLE | PROCMAP_QUERY_VMA_WRITABLE |
                                    PROCMAP_QUERY_VMA_EXECUTABLE | PROCMAP_QUERY_VMA_SHARED;
constexpr uint64_t known_flags =
    of_permissions | PROCMAP_QUERY_COVERING_OR_NEXT_VMA | PROCMAP_QUERY_FILE_BACKED_VMA;

// In /proc/PID/maps only newlines of a name are escaped.
std::string without_escapes(std::string_view name) {
    constexpr std::string_view escape = "\\012";
    std::string plain;
    for (size_t at = 0; (at = name.find(escape)) != name.npos;) {
        plain += name.substr(0, at);
        plain += '\n';
        name.remove_prefix(at + escape.size());
    }
    return plain += name;
}

std::optional<ShownMapping> mapping_of(const std::string& line) {
    ShownMapping m;
    char permissions[5] = {};
    int name_at = 0;
    int found = std::sscanf(
        line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &m.begin,
        &m.end, permissions, &m.offset, &m.device_major, &m.device_minor, &m.inode, &name_at);
    if (found < 7) return std::nullopt;
    if (permissions[0] == 'r') m.flags |= PROCMAP_QUERY_VMA_READABLE;
    if (permissions[1] == 'w') m.flags |= PROCMAP_QUERY_VMA_WRITABLE;
    if (permissions[2] == 'x') m.flags |= PROCMAP_QUERY_VMA_EXECUTABLE;
    if (permissions[3] == 's') m.flags |= PROCMAP_QUERY_VMA_SHARED;
    if (name_at > 0) m.name = without_escapes(line.substr(static_cast<size_t>(name_at)));
    return m;
}

std::vector<std::byte> id_in_notes(std::span<const std::byte> notes) {
    constexpr auto rounded = [](size_t size) { return (size + 3) & ~size_t{3}; };
    while (notes.size() >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr note;
        std::memcpy(&note, notes.data(), sizeof note);
        size_t name_size = rounded(note.n_namesz), content_size = rounded(note.n_descsz);
        size_t left = notes.size() - sizeof note;
        if (name_size > left || content_size > left - name_size) return {};
        auto name = notes.subspan(sizeof note, note.n_namesz);
        auto content = notes.subspan(sizeof note + name_size, note.n_descsz);
        bool is_id = note.n_type == NT_GNU_BUILD_ID && name.size() == sizeof ELF_NOTE_GNU &&
                     std::memcmp(name.data(), ELF_NOTE_GNU, name.size()) == 0;
        if (is_id) return {content.begin(), content.end()};
        notes = notes.subspan(sizeof note + name_size + content_size);
    }
    return {};
}

}  // namespace

bool kernel_has_mapping_query() {
    static const bool has = [] {
        Fd maps(open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
        procmap_query query{};
        query.size = sizeof query;
        query.query_flags = PROCMAP_QUERY_COVERING_OR_NEXT_VMA;
        return maps && ioctl(maps.get(), PROCMAP_QUERY, &query) == 0;
    }();
    return has;
}

std::optional<ShownMapping> find_shown(std::string_view maps, uint64_t flags, uint64_t address) {
    bool or_next = flags & PROCMAP_QUERY_COVERING_OR_NEXT_VMA;
    while (!maps.empty()) {
        size_t line_end = std::min(maps.find('\n'), maps.size());
        auto m = mapping_of(std::string(maps.substr(0, line_end)));
        maps.remove_prefix(std::min(line_end + 1, maps.size()));
        if (!m || m->end <= address) continue;
        bool fits = (m->flags & flags & of_permissions) == (flags & of_permissions);
        if (flags & PROCMAP_QUERY_FILE_BACKED_VMA) fits = fits && m->of_file();
        if (fits && (or_next || m->begin <= address)) return m;
        if (!or_next) return std::nullopt;
    }
    return std::nullopt;
}

int error_of_query(const procmap_query& query) {
    if (query.query_flags & ~known_flags) return EINVAL;
    if ((query.vma_name_size != 0) != (query.vma_name_addr != 0)) return EINVAL;
    if ((query.build_id_size != 0) != (query.build_id_addr != 0)) return EINVAL;
    return 0;
}

void answer_query(const ShownMapping& mapping, procmap_query& query) {
    query.vma_start = mapping.begin;
    query.vma_end = mapping.end;
    query.vma_flags = mapping.flags;
    query.vma_page_size = page_size;
    query.vma_offset = mapping.of_file() ? mapping.offset : 0;
    query.inode = mapping.inode;
    query.dev_major = mapping.device_major;
    query.dev_minor = mapping.device_minor;
}

std::vector<std::byte> build_id_of(const std::string& path) {
    constexpr size_t most_headers = 64, most_notes = 64 << 10;
    Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    Elf64_Ehdr header{};
    bool read = file && pread(file.get(), &header, sizeof header, 0) == sizeof header;
    bool sound = read && std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
                 header.e_ident[EI_CLASS] == ELFCLASS64 &&
                 header.e_phentsize == sizeof(Elf64_Phdr) && header.e_phnum <= most_headers;
    if (!sound) return {};
    std::vector<Elf64_Phdr> parts(header.e_phnum);
    const size_t size = parts.size() * sizeof(Elf64_Phdr);
    const ssize_t got = pread(file.get(), parts.data(), size, static_cast<off_t>(header.e_phoff));
    if (got != static_cast<ssize_t>(size)) return {};
    for (const Elf64_Phdr& part : parts) {
        if (part.p_type != PT_NOTE || part.p_filesz > most_notes) continue;
        std::vector<std::byte> notes(part.p_filesz);
        ssize_t has =
            pread(file.get(), notes.data(), notes.size(), static_cast<off_t>(part.p_offset));
        if (has != static_cast<ssize_t>(notes.size())) continue;
        auto id = id_in_notes(notes);
        if (!id.empty()) return id;
    }
    return {};
}

}  // namespace gpr
