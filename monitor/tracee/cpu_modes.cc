#include "monitor/tracee/cpu_modes.h"

#include <asm/prctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

namespace gpr {

bool CpuModes::note(uint64_t number, const uint64_t* args) {
    auto option = static_cast<int>(args[0]);
    if (number == SYS_prctl && option == PR_SET_TSC) {
        if (args[1] != PR_TSC_ENABLE && args[1] != PR_TSC_SIGSEGV) return false;
        tsc = static_cast<uint8_t>(args[1]);
        return true;
    }
    if (number != SYS_arch_prctl || option != ARCH_SET_CPUID) return false;
    cpuid = args[1] == 0 ? faults : works;
    return true;
}

std::vector<Call> CpuModes::calls_from(const CpuModes& before) const {
    std::vector<Call> calls;
    if (tsc != 0 && tsc != before.tsc) calls.push_back({SYS_prctl, {PR_SET_TSC, tsc}, 0});
    if (cpuid != as_it_was && cpuid != before.cpuid) {
        calls.push_back({SYS_arch_prctl, {ARCH_SET_CPUID, cpuid == works}, 0});
    }
    return calls;
}

CpuModes CpuModes::from_wire(uint8_t bits) {
    CpuModes modes;
    modes.tsc = bits & 0xf;
    modes.cpuid = bits >> 4 == faults ? faults : bits >> 4 == works ? works : as_it_was;
    return modes;
}

}  // namespace gpr
