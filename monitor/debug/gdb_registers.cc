#include "monitor/debug/gdb_registers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "monitor/debug/gdb_packets.h"
#include "monitor/debug/x87_tags.h"

namespace gpr::debug {

namespace {
// The XSAVE image: Intel SDM volume 1, 10.5.1 and 13.4.
constexpr size_t control_at = 0;
constexpr size_t status_at = 2;
constexpr size_t tags_at = 4;
constexpr size_t opcode_at = 6;
constexpr size_t instruction_at = 8;
constexpr size_t operand_at = 16;
constexpr size_t mxcsr_at = 24;
constexpr size_t mxcsr_mask_at = 28;
constexpr size_t stack_at = 32;
constexpr size_t xmm_at = 160;
constexpr size_t xmm_end = 416;
constexpr size_t header_at = 512;
constexpr size_t components_at = 576;
constexpr unsigned x87 = 0, sse = 1, avx = 2, opmask = 5, zmm_upper = 6, zmm_high = 7, pkru = 9;

// The initial states, Intel SDM volume 1, 13.6.
constexpr uint16_t initial_control = 0x37f;
constexpr uint32_t initial_mxcsr = 0x1f80;
constexpr uint32_t usual_mxcsr_mask = 0xffbf;  // if the image has no mask (0)
constexpr uint16_t opcode_mask = 0x7ff;

using Part = GdbRegister::Part;

template <class T>
void put(std::vector<std::byte>& image, size_t at, T value) {
    std::memcpy(image.data() + at, &value, sizeof value);
}

template <class T>
T get(const std::vector<std::byte>& image, size_t at) {
    T value{};
    std::memcpy(&value, image.data() + at, sizeof value);
    return value;
}

template <class T>
std::string bytes_of(T value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
}

uint64_t bit(unsigned component) { return uint64_t{1} << component; }

// The image may have old bytes for a component that is not in use.
bool in_use(const Registers& registers, const GdbRegister& what) {
    const uint64_t components = extended_state_in_use(registers.extended);
    switch (what.part) {
        case Part::general: return true;
        case Part::x87:
        case Part::x87_tags: return components & bit(x87);
        case Part::sse: return components & bit(sse);
        case Part::mxcsr: return components & (bit(sse) | bit(avx));
        case Part::component: return components & bit(what.component);
    }
    return false;
}

std::string initial_value(const GdbRegister& what) {
    std::string value(what.size, '\0');
    auto set = [&](auto number) { value.replace(0, sizeof number, bytes_of(number)); };
    if (what.part == Part::mxcsr) set(initial_mxcsr);
    if (what.part == Part::x87_tags) set(all_x87_empty);
    if (what.part == Part::x87 && what.offset == control_at) set(initial_control);
    return value;
}
}  // namespace

GdbRegisters::GdbRegisters(const ExtendedStateLayout& layout) : layout_(layout) {
    add_general();
    add_x87();
    add_vectors();
    if (layout_.components[zmm_high].size != 0) add_avx512();
    if (layout_.components[pkru].size != 0) {
        add({"pkru", 4, "uint32", "", Feature::pkeys, Part::component, pkru, 0, 4});
    }
}

const GdbRegisters& GdbRegisters::of_this_processor() {
    static const GdbRegisters registers(ExtendedStateLayout::of_this_processor());
    return registers;
}

bool GdbRegisters::has(Feature feature) const {
    return std::ranges::find(all_, feature, &GdbRegister::feature) != all_.end();
}

void GdbRegisters::add(GdbRegister what) { all_.push_back(std::move(what)); }

void GdbRegisters::add_general() {
    auto whole = [this](const char* name, size_t offset, const char* type) {
        add({name, 8, type, "", Feature::core, Part::general, 0, offset, 8});
    };
    auto half = [this](const char* name, size_t offset, const char* type) {
        add({name, 4, type, "", Feature::core, Part::general, 0, offset, 8});
    };
    using User = user_regs_struct;
    whole("rax", offsetof(User, rax), "int64");
    whole("rbx", offsetof(User, rbx), "int64");
    whole("rcx", offsetof(User, rcx), "int64");
    whole("rdx", offsetof(User, rdx), "int64");
    whole("rsi", offsetof(User, rsi), "int64");
    whole("rdi", offsetof(User, rdi), "int64");
    whole("rbp", offsetof(User, rbp), "data_ptr");
    whole("rsp", offsetof(User, rsp), "data_ptr");
    whole("r8", offsetof(User, r8), "int64");
    whole("r9", offsetof(User, r9), "int64");
    whole("r10", offsetof(User, r10), "int64");
    whole("r11", offsetof(User, r11), "int64");
    whole("r12", offsetof(User, r12), "int64");
    whole("r13", offsetof(User, r13), "int64");
    whole("r14", offsetof(User, r14), "int64");
    whole("r15", offsetof(User, r15), "int64");
    whole("rip", offsetof(User, rip), "code_ptr");
    half("eflags", offsetof(User, eflags), "i386_eflags");
    half("cs", offsetof(User, cs), "int32");
    half("ss", offsetof(User, ss), "int32");
    half("ds", offsetof(User, ds), "int32");
    half("es", offsetof(User, es), "int32");
    half("fs", offsetof(User, fs), "int32");
    half("gs", offsetof(User, gs), "int32");
}

void GdbRegisters::add_x87() {
    for (size_t i = 0; i < 8; i++) {
        add({fmt::format("st{}", i), 10, "i387_ext", "", Feature::core, Part::x87, x87,
             stack_at + 16 * i, 10});
    }
    auto word = [this](const char* name, Part part, size_t offset, size_t stored) {
        add({name, 4, "int", "float", Feature::core, part, x87, offset, stored});
    };
    word("fctrl", Part::x87, control_at, 2);
    word("fstat", Part::x87, status_at, 2);
    word("ftag", Part::x87_tags, tags_at, 1);
    // The image has 64-bit addresses, of which gdb shows the lower half and the next 16 bits.
    word("fiseg", Part::x87, instruction_at + 4, 2);
    word("fioff", Part::x87, instruction_at, 4);
    word("foseg", Part::x87, operand_at + 4, 2);
    word("fooff", Part::x87, operand_at, 4);
    word("fop", Part::x87, opcode_at, 2);
}

void GdbRegisters::add_vectors() {
    for (size_t i = 0; i < 16; i++) {
        add({fmt::format("xmm{}", i), 16, "vec128", "", Feature::sse, Part::sse, sse,
             xmm_at + 16 * i, 16});
    }
    add({"mxcsr", 4, "i386_mxcsr", "vector", Feature::sse, Part::mxcsr, sse, mxcsr_at, 4});
    using User = user_regs_struct;
    add({"orig_rax", 8, "int", "system", Feature::linux_calls, Part::general, 0,
         offsetof(User, orig_rax), 8});
    add({"fs_base", 8, "int", "", Feature::segments, Part::general, 0, offsetof(User, fs_base), 8});
    add({"gs_base", 8, "int", "", Feature::segments, Part::general, 0, offsetof(User, gs_base), 8});
    if (layout_.components[avx].size == 0) return;
    for (size_t i = 0; i < 16; i++) {
        add({fmt::format("ymm{}h", i), 16, "uint128", "", Feature::avx, Part::component, avx,
             16 * i, 16});
    }
}

// zmm16 to zmm31 are in one component, the parts of zmm0 to zmm15 in three.
void GdbRegisters::add_avx512() {
    auto series = [this](const char* name, size_t first, size_t size, const char* type,
                         unsigned component, size_t step, size_t offset) {
        for (size_t i = 0; i < 16; i++) {
            add({fmt::format(fmt::runtime(name), first + i), size, type, "", Feature::avx512,
                 Part::component, component, step * i + offset, size});
        }
    };
    series("xmm{}", 16, 16, "vec128", zmm_high, 64, 0);
    series("ymm{}h", 16, 16, "uint128", zmm_high, 64, 16);
    for (size_t i = 0; i < 8; i++) {
        add({fmt::format("k{}", i), 8, "uint64", "", Feature::avx512, Part::component, opmask,
             8 * i, 8});
    }
    series("zmm{}h", 0, 32, "v2ui128", zmm_upper, 32, 0);
    series("zmm{}h", 16, 32, "v2ui128", zmm_high, 64, 32);
}

size_t GdbRegisters::place_of(const GdbRegister& what) const {
    if (what.part != Part::component) return what.offset;
    return layout_.components[what.component].offset + what.offset;
}

bool GdbRegisters::available(const Registers& in, const GdbRegister& what) const {
    if (what.part == Part::general) return true;
    return in.extended.size() >= std::max(components_at, place_of(what) + what.stored_size);
}

std::optional<std::string> GdbRegisters::read(const Registers& from, size_t number) const {
    if (number >= all_.size() || !available(from, all_[number])) return std::nullopt;
    const GdbRegister& what = all_[number];
    if (!in_use(from, what)) return initial_value(what);
    std::string value(what.size, '\0');
    const bool general = what.part == Part::general;
    const auto* source =
        general ? reinterpret_cast<const std::byte*>(&from.general) : from.extended.data();
    std::memcpy(value.data(), source + place_of(what), std::min(what.size, what.stored_size));
    if (what.part == Part::x87_tags) {
        value.replace(0, sizeof(uint16_t), bytes_of(x87_tags(from.extended)));
    }
    return value;
}

// As the processor does: gives the rest of the register's component its initial state.
void GdbRegisters::begin_to_use(Registers& in, const GdbRegister& what) const {
    if (what.part == Part::general) return;
    std::vector<std::byte>& image = in.extended;
    auto clear = [&](size_t from, size_t end) {
        std::memset(image.data() + from, 0, std::min(end, image.size()) - from);
    };
    uint64_t components = extended_state_in_use(image);
    // MXCSR is valid if SSE or AVX is in use.
    const bool has_mxcsr = components & (bit(sse) | bit(avx));
    if (!has_mxcsr && (what.component == sse || what.component == avx)) {
        put(image, mxcsr_at, initial_mxcsr);
    }
    if (components & bit(what.component)) return;
    if (what.component == x87) {
        clear(control_at, mxcsr_at);
        clear(stack_at, xmm_at);
        put(image, control_at, initial_control);
    } else if (what.component == sse) {
        clear(xmm_at, xmm_end);
    } else {
        const auto [offset, size] = layout_.components[what.component];
        clear(offset, offset + size);
    }
    components |= bit(what.component);
    put(image, header_at, components);
}

bool GdbRegisters::write(Registers& to, size_t number, std::string_view bytes) const {
    if (number >= all_.size() || !available(to, all_[number])) return false;
    const GdbRegister& what = all_[number];
    if (bytes.size() != what.size) return false;
    begin_to_use(to, what);
    const size_t length = std::min(what.size, what.stored_size);
    if (what.part == Part::general) {
        auto* place = reinterpret_cast<std::byte*>(&to.general) + what.offset;
        std::memset(place, 0, what.stored_size);
        std::memcpy(place, bytes.data(), length);
        return true;
    }
    std::vector<std::byte>& image = to.extended;
    if (what.part == Part::x87_tags) {
        uint16_t tags = 0;
        std::memcpy(&tags, bytes.data(), sizeof tags);
        put(image, tags_at, abridged_x87_tags(tags));
        return true;
    }
    std::memcpy(image.data() + place_of(what), bytes.data(), length);
    if (what.part == Part::mxcsr) {  // the kernel refuses a state with bits outside of the mask
        const auto mask = get<uint32_t>(image, mxcsr_mask_at);
        put(image, mxcsr_at,
            get<uint32_t>(image, mxcsr_at) & (mask != 0 ? mask : usual_mxcsr_mask));
    }
    if (what.part == Part::x87 && what.offset == opcode_at) {
        put<uint16_t>(image, opcode_at, get<uint16_t>(image, opcode_at) & opcode_mask);
    }
    return true;
}

std::string GdbRegisters::read_all(const Registers& from) const {
    std::string digits;
    for (size_t number = 0; number < all_.size(); number++) {
        auto value = read(from, number);
        digits += value ? to_hex(*value) : std::string(2 * all_[number].size, 'x');
    }
    return digits;
}

bool GdbRegisters::write_all(Registers& to, std::string_view digits) const {
    for (size_t number = 0; number < all_.size(); number++) {
        const std::string_view own = digits.substr(0, 2 * all_[number].size);
        if (own.size() != 2 * all_[number].size) return false;
        digits.remove_prefix(own.size());
        if (own.find_first_not_of('x') == std::string_view::npos) continue;
        auto bytes = from_hex(own);
        if (!bytes) return false;
        if (read(to, number) != *bytes) (void)write(to, number, *bytes);
    }
    return digits.empty();
}

}  // namespace gpr::debug
