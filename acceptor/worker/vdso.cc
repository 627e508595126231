#include "acceptor/worker/vdso.h"

#include <elf.h>
#include <fmt/format.h>
#include <gelf.h>
#include <libelf.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace gpr {

namespace {

struct EndElf {
    void operator()(Elf* elf) const { elf_end(elf); }
};

using Code = std::vector<uint8_t>;

template <class Number>
void append(Code& code, Number number) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(&number);
    code.insert(code.end(), bytes, bytes + sizeof number);
}

Code jump_to(uint64_t address) {
    Code code{0x49, 0xbb};  // mov $address, %r11 (a call may clobber it)
    append(code, address);
    code.insert(code.end(), {0x41, 0xff, 0xe3});  // jmp *%r11
    return code;
}

Code system_call(uint32_t number) {
    Code code{0xb8};  // mov $number, %eax
    append(code, number);
    code.insert(code.end(), {0x0f, 0x05, 0xc3});  // syscall; ret
    return code;
}

Code return_error(int32_t error) {
    Code code{0x48, 0xc7, 0xc0};  // mov $-error, %rax
    append(code, -error);
    code.push_back(0xc3);  // ret
    return code;
}

// Code for a function that this kernel's vdso lacks; empty: there is no replacement.
Code without(const std::string& name) {
    static const std::map<std::string, uint32_t> calls{
        {"clock_gettime", SYS_clock_gettime},
        {"gettimeofday", SYS_gettimeofday},
        {"clock_getres", SYS_clock_getres},
        {"time", SYS_time},
        {"getcpu", SYS_getcpu},
    };
    constexpr std::string_view prefix = "__vdso_";
    std::string plain = name.starts_with(prefix) ? name.substr(prefix.size()) : name;
    if (auto call = calls.find(plain); call != calls.end()) return system_call(call->second);
    // Its callers then make the system call of that name, which has fewer arguments.
    if (plain == "getrandom") return return_error(ENOSYS);
    return {};
}

}  // namespace

Result<VdsoFunctions> vdso_functions(std::span<const std::byte> image) {
    elf_version(EV_CURRENT);
    // libelf does not write to the image.
    auto* bytes = reinterpret_cast<char*>(const_cast<std::byte*>(image.data()));
    std::unique_ptr<Elf, EndElf> elf(elf_memory(bytes, image.size()));
    if (!elf || elf_kind(elf.get()) != ELF_K_ELF || gelf_getclass(elf.get()) != ELFCLASS64) {
        return fail("a vdso that is no ELF image");
    }
    VdsoFunctions found;
    for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf.get(), section));) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_DYNSYM) continue;
        Elf_Data* data = elf_getdata(section, nullptr);
        GElf_Sym symbol;
        for (int i = 0; data && gelf_getsym(data, i, &symbol); i++) {
            if (GELF_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF) continue;
            const char* name = elf_strptr(elf.get(), header.sh_link, symbol.st_name);
            bool inside =
                symbol.st_value <= image.size() && symbol.st_size <= image.size() - symbol.st_value;
            if (!name || !inside) return fail("a vdso with symbols outside of it");
            found[name] = {symbol.st_value, symbol.st_size};
        }
    }
    if (found.empty()) return fail("a vdso without functions");
    return found;
}

bool same_functions(std::span<const std::byte> a, std::span<const std::byte> b) {
    if (a.empty() && b.empty()) return true;
    auto one = vdso_functions(a), other = vdso_functions(b);
    return one && other && *one == *other;
}

Result<std::vector<std::byte>> vdso_proxy(std::span<const std::byte> theirs,
                                          std::span<const std::byte> ours, uint64_t ours_at) {
    GPR_TRY(const VdsoFunctions wanted, vdso_functions(theirs));
    GPR_TRY(const VdsoFunctions known, vdso_functions(ours));
    std::vector<std::byte> proxy(theirs.begin(), theirs.end());
    for (const auto& [name, function] : wanted) {
        auto own = known.find(name);
        Code code = own == known.end() ? without(name) : jump_to(ours_at + own->second.offset);
        if (code.empty()) return fail(fmt::format("its kernel's vdso has no {}", name));
        if (code.size() > function.size) {
            return fail(fmt::format("the initiator's {} is too short to be replaced", name));
        }
        std::memcpy(proxy.data() + function.offset, code.data(), code.size());
    }
    return proxy;
}

}  // namespace gpr
