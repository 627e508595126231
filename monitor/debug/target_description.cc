#include "monitor/debug/target_description.h"

#include <fmt/format.h>

#include <iterator>

namespace gpr::debug {

namespace {

struct NamedFeature {
    Feature feature;
    const char* name;
};
// The names that gdb knows. gdb numbers registers in the order of the description, so this is the
// order of GdbRegisters.
constexpr NamedFeature features[] = {
    {Feature::core, "core"},         {Feature::sse, "sse"}, {Feature::linux_calls, "linux"},
    {Feature::segments, "segments"}, {Feature::avx, "avx"}, {Feature::avx512, "avx512"},
    {Feature::pkeys, "pkeys"},
};

struct Flag {
    const char* name;
    int bit;
};
// Bit 1 is always set and has no name.
constexpr Flag eflags[] = {{"CF", 0},  {"", 1},    {"PF", 2},   {"AF", 4},   {"ZF", 6},  {"SF", 7},
                           {"TF", 8},  {"IF", 9},  {"DF", 10},  {"OF", 11},  {"NT", 14}, {"RF", 16},
                           {"VM", 17}, {"AC", 18}, {"VIF", 19}, {"VIP", 20}, {"ID", 21}};
constexpr Flag mxcsr_flags[] = {{"IE", 0},  {"DE", 1},  {"ZE", 2},  {"OE", 3}, {"UE", 4},
                                {"PE", 5},  {"DAZ", 6}, {"IM", 7},  {"DM", 8}, {"ZM", 9},
                                {"OM", 10}, {"UM", 11}, {"PM", 12}, {"FZ", 15}};

template <size_t N>
std::string flags_type(const char* id, const Flag (&flags)[N]) {
    std::string text = fmt::format("<flags id=\"{}\" size=\"4\">", id);
    for (const auto& [name, bit] : flags) {
        text += fmt::format("<field name=\"{}\" start=\"{}\" end=\"{}\"/>", name, bit, bit);
    }
    return text + "</flags>\n";
}

struct Lane {
    const char* field;
    const char* vector;
    const char* type;
    int count;
};
// Without types that only newer versions of gdb know (bfloat16): older ones would refuse the
// description.
constexpr Lane lanes[] = {
    {"v4_float", "v4f", "ieee_single", 4}, {"v2_double", "v2d", "ieee_double", 2},
    {"v16_int8", "v16i8", "int8", 16},     {"v8_int16", "v8i16", "int16", 8},
    {"v4_int32", "v4i32", "int32", 4},     {"v2_int64", "v2i64", "int64", 2}};

std::string vector_type() {
    std::string vectors;
    std::string fields;
    for (const auto& [field, vector, type, count] : lanes) {
        vectors +=
            fmt::format("<vector id=\"{}\" type=\"{}\" count=\"{}\"/>\n", vector, type, count);
        fields += fmt::format("<field name=\"{}\" type=\"{}\"/>", field, vector);
    }
    return vectors + "<union id=\"vec128\">" + fields +
           "<field name=\"uint128\" type=\"uint128\"/></union>\n";
}

// A feature sees only the types that it defines itself.
std::string types_of(Feature feature) {
    switch (feature) {
        case Feature::core: return flags_type("i386_eflags", eflags);
        case Feature::sse: return vector_type() + flags_type("i386_mxcsr", mxcsr_flags);
        case Feature::avx512:
            return vector_type() + "<vector id=\"v2ui128\" type=\"uint128\" count=\"2\"/>\n";
        case Feature::linux_calls:
        case Feature::segments:
        case Feature::avx:
        case Feature::pkeys: return "";
    }
    return "";
}

}  // namespace

std::string target_description(const GdbRegisters& registers) {
    std::string text =
        "<?xml version=\"1.0\"?>\n<!DOCTYPE target SYSTEM \"gdb-target.dtd\">\n"
        "<target version=\"1.0\">\n<architecture>i386:x86-64</architecture>\n"
        "<osabi>GNU/Linux</osabi>\n";
    for (const auto& [feature, name] : features) {
        if (!registers.has(feature)) continue;
        text += fmt::format("<feature name=\"org.gnu.gdb.i386.{}\">\n{}", name, types_of(feature));
        for (size_t number = 0; number < registers.all().size(); number++) {
            const GdbRegister& what = registers.all()[number];
            if (what.feature != feature) continue;
            text += fmt::format("<reg name=\"{}\" bitsize=\"{}\" type=\"{}\" regnum=\"{}\"",
                                what.name, 8 * what.size, what.type, number);
            if (!what.group.empty()) text += fmt::format(" group=\"{}\"", what.group);
            text += "/>\n";
        }
        text += "</feature>\n";
    }
    return text + "</target>\n";
}

}  // namespace gpr::debug
