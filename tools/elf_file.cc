#include "tools/elf_file.h"

#include <fcntl.h>
#include <gelf.h>

#include <memory>
#include <optional>

#include "base/fd.h"

namespace gpr {
namespace {

struct EndElf {
    void operator()(Elf* elf) const { elf_end(elf); }
};
using ElfHandle = std::unique_ptr<Elf, EndElf>;

// A damaged file must not ask for more than dynamic linking ever needs.
constexpr size_t longest_string = 4096;

class Reader {
public:
    explicit Reader(Elf* elf) : elf_(elf) {
        size_t count = 0;
        elf_getphdrnum(elf_, &count);
        for (size_t i = 0; i < count; i++) {
            GElf_Phdr header{};
            if (gelf_getphdr(elf_, static_cast<int>(i), &header)) headers_.push_back(header);
        }
    }

    ElfFile read() {
        for (const GElf_Phdr& header : headers_) {
            if (header.p_type == PT_INTERP) file_.interpreter = text_at(header.p_offset);
            if (header.p_type == PT_DYNAMIC) read_dynamic(header);
        }
        if (!file_.runpath.empty()) file_.rpath.clear();
        return std::move(file_);
    }

private:
    void read_dynamic(const GElf_Phdr& header) {
        Elf_Data* data = elf_getdata_rawchunk(elf_, static_cast<int64_t>(header.p_offset),
                                              header.p_filesz, ELF_T_DYN);
        if (!data) return;
        std::vector<GElf_Dyn> entries;
        GElf_Dyn entry{};
        for (int i = 0; gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++) {
            entries.push_back(entry);
            if (entry.d_tag == DT_STRTAB) strings_ = offset_of(entry.d_un.d_ptr);
        }
        for (const GElf_Dyn& e : entries) {
            if (e.d_tag == DT_NEEDED) file_.needed.push_back(string(e.d_un.d_val));
            if (e.d_tag == DT_RPATH) file_.rpath = string(e.d_un.d_val);
            if (e.d_tag == DT_RUNPATH) file_.runpath = string(e.d_un.d_val);
            if (e.d_tag == DT_FLAGS_1) file_.no_default_folders = e.d_un.d_val & DF_1_NODEFLIB;
        }
    }

    // The file offset of an address. Section headers would tell it, too, but may be stripped.
    [[nodiscard]] std::optional<uint64_t> offset_of(uint64_t address) const {
        for (const GElf_Phdr& header : headers_) {
            bool inside = address >= header.p_vaddr && address - header.p_vaddr < header.p_filesz;
            if (header.p_type == PT_LOAD && inside) {
                return header.p_offset + (address - header.p_vaddr);
            }
        }
        return std::nullopt;
    }

    std::string string(uint64_t at) { return strings_ ? text_at(*strings_ + at) : std::string(); }

    std::string text_at(uint64_t offset) {
        size_t size = 0;
        const char* file = elf_rawfile(elf_, &size);
        if (!file || offset >= size) return "";
        return {file + offset, strnlen(file + offset, std::min(size - offset, longest_string))};
    }

    Elf* elf_;
    std::vector<GElf_Phdr> headers_;
    std::optional<uint64_t> strings_;
    ElfFile file_;
};

}  // namespace

Result<ElfFile> read_elf(const std::string& path) {
    const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return fail(errno, fmt::format("cannot read {}", path));
    elf_version(EV_CURRENT);
    const ElfHandle elf(elf_begin(fd.get(), ELF_C_READ, nullptr));
    GElf_Ehdr header{};
    if (!elf || elf_kind(elf.get()) != ELF_K_ELF || !gelf_getehdr(elf.get(), &header)) {
        return Failure(Error{ENOEXEC, fmt::format("{} is no ELF file", path)});
    }
    if (header.e_machine != EM_X86_64 || header.e_ident[EI_CLASS] != ELFCLASS64) {
        return Failure(Error{ENOEXEC, fmt::format("{} is for another machine than x86-64", path)});
    }
    return Reader(elf.get()).read();
}

}  // namespace gpr
