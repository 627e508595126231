#include "monitor/node/host_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace gpr {

namespace {

struct FeatureWord {
    uint32_t leaf, subleaf;
    uint32_t CpuidLeaf::*word;
    const char* name;
    uint32_t mask;  // bits about instructions that user code may execute
};

// Intel SDM vol. 2A, CPUID. The masks leave out bits about the machine (monitor, x2apic,
// hypervisor, speculation controls).
const FeatureWord feature_words[] = {
    {1, 0, &CpuidLeaf::ecx, "1.ecx", 0x76dc3203},
    {1, 0, &CpuidLeaf::edx, "1.edx", 0x07808131},
    {7, 0, &CpuidLeaf::ebx, "7.ebx", 0xf1bf8b39},
    {7, 0, &CpuidLeaf::ecx, "7.ecx", 0x1a405f62},
    {7, 0, &CpuidLeaf::edx, "7.edx", 0x03c0010c},
    {7, 1, &CpuidLeaf::eax, "7.1.eax", 0x80a000bf},
    {7, 1, &CpuidLeaf::edx, "7.1.edx", 0x00288530},
    {0x1e, 1, &CpuidLeaf::eax, "1e.1.eax", 0x000001ff},  // AMX: Intel's extensions of 2024
    {0xd, 1, &CpuidLeaf::eax, "d.1.eax", 0x00000007},
    {0x80000001, 0, &CpuidLeaf::ecx, "80000001.ecx", 0x00210161},
};

struct NamedBit {
    const char* word;
    int bit;
    const char* name;
};
const NamedBit named_bits[] = {
    {"1.ecx", 0, "sse3"},         {"1.ecx", 9, "ssse3"},         {"1.ecx", 12, "fma"},
    {"1.ecx", 19, "sse4_1"},      {"1.ecx", 20, "sse4_2"},       {"1.ecx", 22, "movbe"},
    {"1.ecx", 23, "popcnt"},      {"1.ecx", 25, "aes"},          {"1.ecx", 28, "avx"},
    {"1.ecx", 29, "f16c"},        {"1.ecx", 30, "rdrand"},       {"7.ebx", 0, "fsgsbase"},
    {"7.ebx", 3, "bmi1"},         {"7.ebx", 5, "avx2"},          {"7.ebx", 8, "bmi2"},
    {"7.ebx", 11, "rtm"},         {"7.ebx", 16, "avx512f"},      {"7.ebx", 17, "avx512dq"},
    {"7.ebx", 18, "rdseed"},      {"7.ebx", 19, "adx"},          {"7.ebx", 21, "avx512ifma"},
    {"7.ebx", 24, "clwb"},        {"7.ebx", 28, "avx512cd"},     {"7.ebx", 29, "sha_ni"},
    {"7.ebx", 30, "avx512bw"},    {"7.ebx", 31, "avx512vl"},     {"7.ecx", 1, "avx512_vbmi"},
    {"7.ecx", 8, "gfni"},         {"7.ecx", 9, "vaes"},          {"7.ecx", 10, "vpclmulqdq"},
    {"7.ecx", 11, "avx512_vnni"}, {"7.edx", 22, "amx_bf16"},     {"7.edx", 24, "amx_tile"},
    {"7.edx", 25, "amx_int8"},    {"7.1.eax", 4, "avx_vnni"},    {"7.1.eax", 5, "avx512_bf16"},
    {"7.1.eax", 21, "amx_fp16"},  {"7.1.edx", 8, "amx_complex"}, {"d.1.eax", 1, "xsavec"},
    {"80000001.ecx", 5, "abm"},
};

constexpr const char* feature_prefix = "cpu feature ";
constexpr const char* state_prefix = "extended state ";

// Names for glibc.cpu.hwcaps (glibc 2.33 and later); glibc uses no other features.
constexpr std::pair<std::string_view, std::string_view> names_in_glibc[] = {
    {"sse3", "SSE3"},         {"ssse3", "SSSE3"},       {"sse4_1", "SSE4_1"},
    {"sse4_2", "SSE4_2"},     {"popcnt", "POPCNT"},     {"movbe", "MOVBE"},
    {"abm", "LZCNT"},         {"avx", "AVX"},           {"f16c", "F16C"},
    {"fma", "FMA"},           {"bmi1", "BMI1"},         {"bmi2", "BMI2"},
    {"avx2", "AVX2"},         {"rtm", "RTM"},           {"avx512f", "AVX512F"},
    {"avx512cd", "AVX512CD"}, {"avx512bw", "AVX512BW"}, {"avx512dq", "AVX512DQ"},
    {"avx512vl", "AVX512VL"}, {"xsavec", "XSAVEC"},
};

uint32_t word_of(const CpuDescription& cpu, const FeatureWord& w) {
    for (const CpuidLeaf& leaf : cpu.leaves) {
        if (leaf.leaf == w.leaf && leaf.subleaf == w.subleaf) return leaf.*(w.word);
    }
    return 0;
}

std::string name_of(const char* word, int bit) {
    for (const NamedBit& n : named_bits) {
        if (n.bit == bit && std::string_view(n.word) == word) {
            return feature_prefix + std::string(n.name);
        }
    }
    return fmt::format("{}cpuid.{} bit {}", feature_prefix, word, bit);
}

}  // namespace

bool hide_feature(CpuDescription& cpu, const std::string& name) {
    for (const NamedBit& bit : named_bits) {
        if (name != bit.name) continue;
        for (const FeatureWord& word : feature_words) {
            if (std::string_view(word.name) != bit.word) continue;
            for (CpuidLeaf& leaf : cpu.leaves) {
                bool here = leaf.leaf == word.leaf && leaf.subleaf == word.subleaf;
                if (here) leaf.*(word.word) &= ~(1U << bit.bit);
            }
        }
        return true;
    }
    return false;
}

bool can_be_masked(const std::vector<std::string>& lacking) {
    return std::all_of(lacking.begin(), lacking.end(), [](const std::string& what) {
        return what.starts_with(feature_prefix) || what.starts_with(state_prefix);
    });
}

std::string with_masked_features(std::string tunables, const std::vector<std::string>& lacking) {
    std::string masks;
    for (const std::string& what : lacking) {
        if (!what.starts_with(feature_prefix)) continue;
        std::string name = what.substr(std::strlen(feature_prefix));
        for (const auto& [ours, glibcs] : names_in_glibc) {
            if (name == ours) masks += fmt::format("{}-{}", masks.empty() ? "" : ",", glibcs);
        }
    }
    if (masks.empty()) return tunables;
    constexpr std::string_view key = "glibc.cpu.hwcaps=";
    size_t at = tunables.find(key);
    if (at == std::string::npos) {
        return fmt::format("{}{}{}{}", tunables, tunables.empty() ? "" : ":", key, masks);
    }
    size_t end = std::min(tunables.find(':', at), tunables.size());
    return tunables.insert(end, "," + masks);
}

std::vector<std::string> lacking_at(const HostDescription& acceptor, const HostDescription& home) {
    std::vector<std::string> lacking;
    if (acceptor.page_size != home.page_size) {
        lacking.push_back(fmt::format("page size {}", home.page_size));
    }
    for (const FeatureWord& w : feature_words) {
        uint32_t missing = word_of(home.cpu, w) & ~word_of(acceptor.cpu, w) & w.mask;
        for (int bit = 0; bit < 32; bit++) {
            if (missing >> bit & 1) lacking.push_back(name_of(w.name, bit));
        }
    }
    // The kernel saves and restores only the components that XCR0 enables, and they determine the
    // layout.
    uint64_t states = home.cpu.xcr0 & ~acceptor.cpu.xcr0;
    if (states != 0) lacking.push_back(fmt::format("{}{:#x} (xcr0)", state_prefix, states));
    return lacking;
}

}  // namespace gpr
