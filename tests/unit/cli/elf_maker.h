// ELF files of nothing but what the dynamic linker reads.
#pragma once

#include <elf.h>

#include <cstring>
#include <string>
#include <vector>

namespace gpr {

struct ElfWish {
    std::vector<std::string> needed;
    std::string runpath;
    std::string rpath;
    std::string interpreter;
    uint16_t machine = EM_X86_64;
    bool nodefaultlib = false;
};

class ElfMaker {
public:
    explicit ElfMaker(const ElfWish& wish) {
        strings_ = std::string(1, '\0');
        for (const std::string& name : wish.needed) add(DT_NEEDED, string(name));
        if (!wish.runpath.empty()) add(DT_RUNPATH, string(wish.runpath));
        if (!wish.rpath.empty()) add(DT_RPATH, string(wish.rpath));
        if (wish.nodefaultlib) add(DT_FLAGS_1, DF_1_NODEFLIB);
        const uint64_t interpreter = string(wish.interpreter);
        // Not loaded where it lies in the file, as in real ones.
        add(DT_STRTAB, load_address + sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Phdr));
        add(DT_NULL, 0);
        const uint64_t strings_at = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Phdr);
        strings_.resize((strings_.size() + 7) / 8 * 8);
        const uint64_t dynamic_at = strings_at + strings_.size();
        const uint64_t dynamic_size = dynamic_.size() * sizeof(Elf64_Dyn);

        Elf64_Ehdr header{};
        std::memcpy(header.e_ident, ELFMAG, SELFMAG);
        header.e_ident[EI_CLASS] = ELFCLASS64;
        header.e_ident[EI_DATA] = ELFDATA2LSB;
        header.e_ident[EI_VERSION] = EV_CURRENT;
        header.e_type = ET_DYN;
        header.e_machine = wish.machine;
        header.e_version = EV_CURRENT;
        header.e_phoff = header.e_ehsize = sizeof header;
        header.e_phentsize = sizeof(Elf64_Phdr);
        header.e_phnum = 3;
        append(header);
        append(segment(PT_LOAD, 0, dynamic_at + dynamic_size));
        append(segment(PT_DYNAMIC, dynamic_at, dynamic_size));
        append(segment(wish.interpreter.empty() ? PT_NULL : PT_INTERP, strings_at + interpreter,
                       wish.interpreter.size() + 1));
        bytes_ += strings_;
        for (const Elf64_Dyn& entry : dynamic_) append(entry);
    }

    [[nodiscard]] const std::string& bytes() const { return bytes_; }

private:
    static constexpr uint64_t load_address = 0x400000;

    static Elf64_Phdr segment(uint32_t type, uint64_t at, uint64_t size) {
        Elf64_Phdr header{};
        header.p_type = type;
        header.p_offset = at;
        header.p_vaddr = load_address + at;
        header.p_filesz = header.p_memsz = size;
        return header;
    }

    uint64_t string(const std::string& text) {
        const uint64_t at = strings_.size();
        strings_ += text + '\0';
        return at;
    }

    void add(int64_t tag, uint64_t value) {
        Elf64_Dyn entry{};
        entry.d_tag = tag;
        entry.d_un.d_val = value;
        dynamic_.push_back(entry);
    }

    template <class T>
    void append(const T& part) {
        bytes_.append(reinterpret_cast<const char*>(&part), sizeof part);
    }

    std::string strings_;
    std::vector<Elf64_Dyn> dynamic_;
    std::string bytes_;
};

}  // namespace gpr
