#include "monitor/debug/gdb_registers.h"

#include <doctest/doctest.h>

#include <cstring>

#include "monitor/debug/gdb_packets.h"
#include "monitor/debug/target_description.h"
#include "monitor/debug/x87_tags.h"

namespace gpr::debug {
namespace {

// With everything that gdb can be told of, whatever the processor of the test has.
ExtendedStateLayout full_layout() {
    ExtendedStateLayout layout;
    layout.components[2] = {576, 256};
    layout.components[5] = {1088, 64};
    layout.components[6] = {1152, 512};
    layout.components[7] = {1664, 1024};
    layout.components[9] = {2688, 8};
    layout.size = 2696;
    return layout;
}

const GdbRegisters& full() {
    static const GdbRegisters registers(full_layout());
    return registers;
}

Registers empty_state() {
    Registers state;
    state.extended.assign(2696, std::byte{0});
    return state;
}

size_t number_of(const std::string& name) {
    for (size_t number = 0; number < full().all().size(); number++) {
        if (full().all()[number].name == name) return number;
    }
    FAIL("no register " << name);
    return 0;
}

std::string read(const Registers& state, const std::string& name) {
    auto value = full().read(state, number_of(name));
    return value ? to_hex(*value) : "none";
}

void write(Registers& state, const std::string& name, std::string_view digits) {
    CHECK(full().write(state, number_of(name), *from_hex(digits)));
}

uint64_t components(const Registers& state) { return extended_state_in_use(state.extended); }

TEST_CASE("the numbers are those of gdb") {
    CHECK(number_of("rax") == 0);
    CHECK(number_of("rip") == 16);
    CHECK(number_of("gs") == 23);
    CHECK(number_of("st0") == 24);
    CHECK(number_of("fctrl") == 32);
    CHECK(number_of("xmm0") == 40);
    CHECK(number_of("mxcsr") == 56);
    CHECK(number_of("orig_rax") == 57);
    CHECK(number_of("ymm0h") == 60);
    CHECK(full().all().size() == 60 + 16 + 16 + 16 + 8 + 16 + 16 + 1);
    CHECK_FALSE(GdbRegisters(ExtendedStateLayout{}).has(Feature::avx));
}

TEST_CASE("general registers are read and written") {
    Registers state = empty_state();
    state.general.rbx = 0x1122334455667788;
    state.general.eflags = 0x246;
    CHECK(read(state, "rbx") == "8877665544332211");
    CHECK(read(state, "eflags") == "46020000");
    write(state, "rip", "0102030405060708");
    CHECK(state.general.rip == 0x0807060504030201);
    write(state, "cs", "33000000");
    CHECK(state.general.cs == 0x33);
    CHECK_FALSE(full().write(state, number_of("rip"), "short"));
    CHECK_FALSE(full().write(state, 1000, "12345678"));
    CHECK_FALSE(full().read(state, 1000));
}

TEST_CASE("a component that is not in use reads as its initial state") {
    Registers state = empty_state();
    std::memset(state.extended.data(), 0x55, 512);
    std::memset(state.extended.data() + 576, 0x55, state.extended.size() - 576);
    CHECK(read(state, "fctrl") == "7f030000");
    CHECK(read(state, "ftag") == "ffff0000");
    CHECK(read(state, "mxcsr") == "801f0000");
    CHECK(read(state, "xmm3") == std::string(32, '0'));
    CHECK(read(state, "ymm3h") == std::string(32, '0'));
    CHECK(read(state, "zmm31h") == std::string(64, '0'));
}

TEST_CASE("writing begins to use a component, and the rest of it is initial") {
    Registers state = empty_state();
    std::memset(state.extended.data() + 576, 0x55, state.extended.size() - 576);
    const std::string value = "000102030405060708090a0b0c0d0e0f";
    write(state, "ymm1h", value);
    CHECK(components(state) == 1 << 2);
    CHECK(read(state, "ymm1h") == value);
    CHECK(read(state, "ymm0h") == std::string(32, '0'));
    CHECK(read(state, "mxcsr") == "801f0000");
    write(state, "xmm2", value);
    CHECK(components(state) == (1 << 2 | 1 << 1));
    CHECK(read(state, "xmm2") == value);
    write(state, "st0", "0000000000000080ff3f");
    CHECK(components(state) == 7);
    CHECK(read(state, "fctrl") == "7f030000");
    write(state, "pkru", "54555555");
    CHECK(read(state, "pkru") == "54555555");
}

TEST_CASE("the parts of a long register lie apart") {
    Registers state = empty_state();
    const std::string low = "000102030405060708090a0b0c0d0e0f";
    const std::string high = "101112131415161718191a1b1c1d1e1f";
    write(state, "xmm17", low);
    write(state, "ymm17h", high);
    write(state, "zmm17h", high + low);
    CHECK(components(state) == 1 << 7);
    std::string whole(64, '\0');
    std::memcpy(whole.data(), state.extended.data() + 1664 + 64, 64);
    CHECK(to_hex(whole) == low + high + high + low);
    write(state, "zmm1h", low + high);
    std::memcpy(whole.data(), state.extended.data() + 1152 + 32, 32);
    CHECK(to_hex(std::string_view(whole).substr(0, 32)) == low + high);
}

TEST_CASE("bits that a processor refuses are not written") {
    Registers state = empty_state();
    write(state, "mxcsr", "ffffffff");
    CHECK(read(state, "mxcsr") == "bfff0000");
    write(state, "fop", "ffff0000");
    CHECK(read(state, "fop") == "ff070000");
}

TEST_CASE("the x87 tag word says what is in each register") {
    Registers state = empty_state();
    write(state, "fstat", "00300000");            // the top is register 6
    write(state, "st0", "0000000000000080ff3f");  // 1, in register 6
    write(state, "st1", "00000000000000000000");  // 0, in register 7
    write(state, "st2", "00000000000000c0ff7f");  // not a number, in register 0
    write(state, "ftag", "feff0000");             // register 0 is in use
    CHECK(static_cast<int>(state.extended[4]) == 0x01);
    CHECK(read(state, "ftag") == "feff0000");
    state.extended[4] = std::byte{0xc1};
    CHECK(read(state, "ftag") == "fe4f0000");
    CHECK(abridged_x87_tags(0x4ffe) == 0xc1);
    CHECK(abridged_x87_tags(all_x87_empty) == 0);
}

TEST_CASE("state that is not there reads as unknown") {
    Registers state;
    CHECK(read(state, "xmm0") == "none");
    CHECK(read(state, "rax") == std::string(16, '0'));
    CHECK_FALSE(full().write(state, number_of("xmm0"), std::string(16, 'a')));
    const std::string all = full().read_all(state);
    CHECK(all.substr(0, 16) == std::string(16, '0'));
    CHECK(all.find('x') == 2 * (17 * 8 + 7 * 4));
    CHECK(full().write_all(state, all));
    CHECK(state.extended.empty());
}

TEST_CASE("all registers go out and come back") {
    Registers state = empty_state();
    uint64_t all_components = 0x2e7;
    for (size_t at = 0; at < state.extended.size(); at++) {
        state.extended[at] = static_cast<std::byte>(at * 7);
    }
    std::memset(state.extended.data() + 512, 0, 64);
    std::memcpy(state.extended.data() + 512, &all_components, sizeof all_components);
    const uint32_t good_mxcsr = 0x1fa0;
    const uint16_t good_opcode = 0x123;
    std::memcpy(state.extended.data() + 24, &good_mxcsr, sizeof good_mxcsr);
    std::memcpy(state.extended.data() + 6, &good_opcode, sizeof good_opcode);
    state.general.r9 = 99;
    Registers other = empty_state();
    const std::string digits = full().read_all(state);
    CHECK(digits.size() < most_packet_bytes);
    REQUIRE(full().write_all(other, digits));
    CHECK((full().read_all(other) == digits));
    CHECK(other.general.r9 == 99);
    CHECK(components(other) == all_components);
    // What does not change does not come into use.
    Registers idle = empty_state();
    REQUIRE(full().write_all(idle, full().read_all(idle)));
    CHECK(components(idle) == 0);
    CHECK_FALSE(full().write_all(other, std::string_view(digits).substr(2)));
    CHECK_FALSE(full().write_all(other, digits + "00"));
}

TEST_CASE("the description has each register under its number") {
    const std::string text = target_description(full());
    CHECK(text.find("<architecture>i386:x86-64</architecture>") != std::string::npos);
    for (const char* feature : {"core", "sse", "linux", "segments", "avx", "avx512", "pkeys"}) {
        CHECK(text.find("\"org.gnu.gdb.i386." + std::string(feature) + "\"") != std::string::npos);
    }
    size_t at = 0;
    for (size_t number = 0; number < full().all().size(); number++) {
        const auto& what = full().all()[number];
        const size_t found = text.find("<reg name=\"" + what.name + "\"");
        REQUIRE(found != std::string::npos);
        CHECK(found > at);
        at = found;
        const std::string line = text.substr(found, text.find('\n', found) - found);
        CHECK(line.find("regnum=\"" + std::to_string(number) + "\"") != std::string::npos);
    }
    const std::string plain = target_description(GdbRegisters(ExtendedStateLayout{}));
    CHECK(plain.find("i386.avx") == std::string::npos);
    CHECK(plain.find("i386.sse") != std::string::npos);
}

}  // namespace
}  // namespace gpr::debug
