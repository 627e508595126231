#include "monitor/rules/function_symbols.h"

#include <fnmatch.h>
#include <gelf.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <set>

#include "monitor/rules/unwind_ranges.h"

namespace gpr {

namespace {

struct EndElf {
    void operator()(Elf* elf) const { elf_end(elf); }
};
using ElfHandle = std::unique_ptr<Elf, EndElf>;

struct Symbol {
    std::string name;
    uint64_t begin = 0, size = 0;  // as an address in the file's image
    bool resolver = false;
};

bool is_before(const Symbol& a, const Symbol& b) {
    return std::pair(a.begin, std::string_view(a.name)) <
           std::pair(b.begin, std::string_view(b.name));
}

// From the dynamic symbol table, which even a stripped library has.
std::vector<Symbol> exported_functions(Elf* elf) {
    std::vector<Symbol> found;
    Elf_Scn* section = nullptr;
    while ((section = elf_nextscn(elf, section))) {
        GElf_Shdr header{};
        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_DYNSYM) continue;
        Elf_Data* data = elf_getdata(section, nullptr);
        GElf_Sym symbol{};
        for (int i = 0; data && gelf_getsym(data, i, &symbol); i++) {
            int type = GELF_ST_TYPE(symbol.st_info);
            bool function = type == STT_FUNC || type == STT_GNU_IFUNC;
            if (!function || symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0) continue;
            const char* name = elf_strptr(elf, header.sh_link, symbol.st_name);
            if (!name || *name == 0) continue;
            found.push_back({name, symbol.st_value, symbol.st_size, type == STT_GNU_IFUNC});
        }
    }
    std::sort(found.begin(), found.end(), is_before);
    return found;
}

// The segments with code, and their offsets in the file.
class Code {
public:
    explicit Code(Elf* elf) {
        size_t count = 0;
        elf_getphdrnum(elf, &count);
        for (size_t i = 0; i < count; i++) {
            GElf_Phdr header{};
            if (!gelf_getphdr(elf, static_cast<int>(i), &header)) continue;
            if (header.p_type == PT_LOAD && (header.p_flags & PF_X)) segments_.push_back(header);
        }
    }

    // The part of [begin, end) that lies in one segment, as file offsets.
    [[nodiscard]] std::optional<std::pair<uint64_t, uint64_t>> offsets(uint64_t begin,
                                                                       uint64_t end) const {
        for (const GElf_Phdr& s : segments_) {
            if (begin < s.p_vaddr || begin - s.p_vaddr >= s.p_filesz) continue;
            end = std::min(end, s.p_vaddr + s.p_filesz);
            if (end <= begin) return std::nullopt;
            return std::pair{begin - s.p_vaddr + s.p_offset, end - s.p_vaddr + s.p_offset};
        }
        return std::nullopt;
    }

    [[nodiscard]] std::optional<uint64_t> address(uint64_t offset) const {
        for (const GElf_Phdr& s : segments_) {
            if (offset >= s.p_offset && offset - s.p_offset < s.p_filesz) {
                return offset - s.p_offset + s.p_vaddr;
            }
        }
        return std::nullopt;
    }

private:
    std::vector<GElf_Phdr> segments_;
};

// A function written in assembly may have no size in the symbol table. Then it ends where its
// unwind information ends, or where the next function begins.
uint64_t end_of(const std::vector<Symbol>& all, const Symbol& symbol, const UnwindRanges& unwind) {
    if (symbol.size != 0) return symbol.begin + symbol.size;
    if (auto range = unwind.find(symbol.begin)) return range->end;
    auto next = std::upper_bound(
        all.begin(), all.end(), symbol.begin,
        [](uint64_t address, const Symbol& other) { return address < other.begin; });
    return next == all.end() ? UINT64_MAX : next->begin;
}

// Some functions begin inside others: cuts the list into ranges that do not overlap.
void keep_apart(std::vector<ChosenFunction>& list) {
    std::stable_sort(
        list.begin(), list.end(),
        [](const ChosenFunction& a, const ChosenFunction& b) { return a.begin < b.begin; });
    std::vector<ChosenFunction> apart;
    for (ChosenFunction& f : list) {
        if (!apart.empty() && f.begin < apart.back().end) {
            if (f.begin == apart.back().begin) {
                apart.back().end = std::max(apart.back().end, f.end);
                continue;
            }
            f.begin = apart.back().end;
            if (f.begin >= f.end) continue;
        }
        apart.push_back(std::move(f));
    }
    list = std::move(apart);
}

}  // namespace

Result<FoundFunctions> find_functions(int fd, const std::string& library,
                                      const std::vector<SplitRule>& rules) {
    elf_version(EV_CURRENT);
    const ElfHandle elf(elf_begin(fd, ELF_C_READ, nullptr));
    GElf_Ehdr header{};
    if (!elf || elf_kind(elf.get()) != ELF_K_ELF || !gelf_getehdr(elf.get(), &header) ||
        header.e_machine != EM_X86_64 || header.e_ident[EI_CLASS] != ELFCLASS64) {
        return Failure(Error{ENOEXEC, library + " is no ELF file for x86-64"});
    }
    const Code code(elf.get());
    const UnwindRanges unwind(elf.get());
    const std::vector<Symbol> all = exported_functions(elf.get());
    auto chosen = std::make_shared<ChosenFunctions>();
    chosen->library = library;
    FoundFunctions found;
    std::set<size_t> used;
    for (const Symbol& symbol : all) {
        const SplitRule* first = nullptr;
        for (size_t i = 0; i < rules.size(); i++) {
            if (fnmatch(rules[i].symbols.c_str(), symbol.name.c_str(), 0) != 0) continue;
            used.insert(i);
            if (!first) first = &rules[i];
        }
        if (!first) continue;
        uint64_t end = symbol.resolver ? symbol.begin + 1 : end_of(all, symbol, unwind);
        if (auto range = code.offsets(symbol.begin, end)) {
            chosen->list.push_back(
                {range->first, range->second, symbol.name, symbol.resolver, first->node_id});
        }
    }
    for (size_t i : used) found.rules.push_back(rules[i]);
    keep_apart(chosen->list);
    if (!chosen->list.empty()) found.functions = std::move(chosen);
    return found;
}

std::optional<uint64_t> rest_of_function(int fd, uint64_t offset) {
    elf_version(EV_CURRENT);
    const ElfHandle elf(elf_begin(fd, ELF_C_READ, nullptr));
    if (!elf) return std::nullopt;
    auto address = Code(elf.get()).address(offset);
    if (!address) return std::nullopt;
    auto span = UnwindRanges(elf.get()).find(*address);
    if (!span) return std::nullopt;
    return span->end - *address;
}

}  // namespace gpr
