#include "monitor/tracee/cpu_modes.h"

#include <asm/prctl.h>
#include <doctest/doctest.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

namespace gpr {
namespace {

bool note(CpuModes& modes, uint64_t number, uint64_t option, uint64_t value) {
    const uint64_t args[6] = {option, value};
    return modes.note(number, args);
}

TEST_CASE("what a thread asks for is done again where it comes to") {
    CpuModes modes;
    CHECK(modes.calls_from({}).empty());
    CHECK_FALSE(note(modes, SYS_prctl, PR_SET_TSC, 17));
    CHECK_FALSE(note(modes, SYS_prctl, PR_SET_NAME, 1));
    CHECK_FALSE(note(modes, SYS_arch_prctl, ARCH_GET_CPUID, 0));
    CHECK(note(modes, SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV));
    CHECK(note(modes, SYS_arch_prctl, ARCH_SET_CPUID, 0));
    auto calls = modes.calls_from({});
    REQUIRE(calls.size() == 2);
    CHECK(calls[0].number == SYS_prctl);
    CHECK(calls[0].args[1] == PR_TSC_SIGSEGV);
    CHECK(calls[1].args[0] == ARCH_SET_CPUID);
    CHECK(calls[1].args[1] == 0);
    CHECK(CpuModes::from_wire(modes.to_wire()) == modes);

    CpuModes later = modes;
    CHECK(note(later, SYS_arch_prctl, ARCH_SET_CPUID, 77));
    calls = later.calls_from(modes);
    REQUIRE(calls.size() == 1);
    CHECK(calls[0].args[1] == 1);
    later.note_exec();
    CHECK(later.calls_from({}).size() == 1);
}

TEST_CASE("foreign bits ask for nothing that is not known") {
    CpuModes modes = CpuModes::from_wire(0x70);
    CHECK(modes.calls_from({}).empty());
}

}  // namespace
}  // namespace gpr
