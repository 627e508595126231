#include "monitor/tracee/extended_state.h"

#include <asm/prctl.h>
#include <cpuid.h>
#include <sys/syscall.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace gpr {

namespace {
// Intel SDM volume 1, 13.4: a legacy area, which is always there, a header, then the components.
constexpr size_t header_at = 512;
constexpr size_t components_at = 576;
constexpr unsigned first_component = 2;  // x87 and SSE are the legacy area
constexpr unsigned leaf = 0xd;

template <class Visit>
void for_each_component(uint64_t bits, Visit visit) {
    bits = bits >> first_component << first_component;
    for (; bits != 0; bits &= bits - 1) visit(static_cast<unsigned>(std::countr_zero(bits)));
}
}  // namespace

const ExtendedStateLayout& ExtendedStateLayout::of_this_processor() {
    // Computed once: under a hypervisor CPUID takes as long as a system call or two.
    static const ExtendedStateLayout layout = [] {
        ExtendedStateLayout found;
        unsigned a = 0, b = 0, c = 0, d = 0;
        if (__get_cpuid_count(leaf, 0, &a, &b, &c, &d) == 0) return found;
        found.size = b;
        uint64_t all = static_cast<uint64_t>(d) << 32 | a;
        for_each_component(all, [&](unsigned number) {
            __get_cpuid_count(leaf, number, &a, &b, &c, &d);
            found.components[number] = {b, a};
        });
        return found;
    }();
    return layout;
}

uint64_t extended_state_in_use(std::span<const std::byte> state) {
    uint64_t bits = 0;
    if (state.size() >= components_at) std::memcpy(&bits, state.data() + header_at, sizeof bits);
    return bits;
}

void forget_tiles(std::span<std::byte> state) {
    uint64_t bits = extended_state_in_use(state) & ~tile_data;
    if (state.size() >= components_at) std::memcpy(state.data() + header_at, &bits, sizeof bits);
}

bool asks_for_state(uint64_t number, const uint64_t* args) {
    auto option = static_cast<int>(args[0]);
    return number == SYS_arch_prctl &&
           (option == ARCH_REQ_XCOMP_PERM || option == ARCH_REQ_XCOMP_GUEST_PERM);
}

size_t extended_state_end(const ExtendedStateLayout& layout, std::span<const std::byte> state) {
    size_t end = components_at;
    for_each_component(extended_state_in_use(state), [&](unsigned number) {
        auto [offset, size] = layout.components[number];
        end = std::max<size_t>(end, offset + size);
    });
    return std::min(end, state.size());
}

std::vector<std::byte> pack_extended_state(const ExtendedStateLayout& layout,
                                           std::span<const std::byte> state) {
    std::vector<std::byte> packed;
    if (state.size() < components_at) return packed;
    packed.reserve(state.size());
    packed.assign(state.begin(), state.begin() + components_at);
    for_each_component(extended_state_in_use(state), [&](unsigned number) {
        auto [offset, size] = layout.components[number];
        if (offset + size > state.size()) return;
        packed.insert(packed.end(), state.begin() + offset, state.begin() + offset + size);
    });
    return packed;
}

Result<std::vector<std::byte>> unpack_extended_state(const ExtendedStateLayout& layout,
                                                     std::span<const std::byte> packed) {
    std::vector<std::byte> state;
    if (packed.empty()) return state;
    if (packed.size() < components_at) return fail("a thread came with a part of its state");
    state.resize(std::max<size_t>(layout.size, components_at));
    std::memcpy(state.data(), packed.data(), components_at);
    size_t at = components_at;
    bool sound = true;
    for_each_component(extended_state_in_use(packed), [&](unsigned number) {
        auto [offset, size] = layout.components[number];
        sound = sound && size > 0 && offset + size <= state.size() && at + size <= packed.size();
        if (!sound) return;
        std::memcpy(state.data() + offset, packed.data() + at, size);
        at += size;
    });
    if (!sound || at != packed.size()) {
        return fail("a thread came with state that this processor does not have");
    }
    return state;
}

}  // namespace gpr
