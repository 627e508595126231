#include "monitor/tracee/vdso_place.h"

#include <elf.h>
#include <fmt/format.h>

#include <cstring>

#include "base/file_text.h"
#include "transport/host.h"

namespace gpr {

bool stands_in_vdso(pid_t pid, const user_regs_struct& regs) {
    if (is_in_call(regs)) return false;
    static const uint64_t size = own_vdso().size();
    const std::string auxv = text_of(fmt::format("/proc/{}/auxv", pid));
    for (size_t at = 0; at + sizeof(Elf64_auxv_t) <= auxv.size(); at += sizeof(Elf64_auxv_t)) {
        Elf64_auxv_t entry{};
        std::memcpy(&entry, auxv.data() + at, sizeof entry);
        if (entry.a_type != AT_SYSINFO_EHDR) continue;
        return regs.rip - entry.a_un.a_val < size;  // wraps around below it
    }
    return false;
}

}  // namespace gpr
