#include "monitor/growth.h"

namespace gpr {

namespace {
// Linux keeps that much free below a stack (stack_guard_gap).
constexpr uint64_t guard_gap = 256 * page_size;
}  // namespace

std::optional<Mapping> growth_for(AddressSpace& space, const siginfo_t& info) {
    if (info.si_signo != SIGSEGV || info.si_code != SEGV_MAPERR) return std::nullopt;
    Address at{reinterpret_cast<uint64_t>(info.si_addr)};
    Mapping* above = space.find_from(at);
    if (!above || !above->grows_down || above->range.contains(at)) return std::nullopt;
    if (at.value < guard_gap + page_size) return std::nullopt;
    if (!space.is_free({Address{at.value - guard_gap}.page(), above->range.begin})) {
        return std::nullopt;
    }
    Mapping growth;
    growth.range = {at.page(), above->range.begin};
    growth.prot = above->prot;
    growth.grows_down = true;
    return growth;
}

siginfo_t end_of_file_info(const siginfo_t& fault) {
    siginfo_t info{};
    info.si_signo = SIGBUS;
    info.si_code = BUS_ADRERR;
    info.si_addr = fault.si_addr;
    return info;
}

}  // namespace gpr
