#include "monitor/host_match.h"

#include <fmt/format.h>

namespace gpr {

namespace {

struct FeatureWord {
    uint32_t leaf, subleaf;
    uint32_t CpuidLeaf::*word;
    const char* name;
    uint32_t mask;  // bits that say what user code may do
};

// Intel SDM vol. 2A, CPUID. Left out of the masks: bits about the machine and not about user code
// (monitor, x2apic, hypervisor, speculation controls).
const FeatureWord feature_words[] = {
    {1, 0, &CpuidLeaf::ecx, "1.ecx", 0x76dc3203},
    {1, 0, &CpuidLeaf::edx, "1.edx", 0x07808131},
    {7, 0, &CpuidLeaf::ebx, "7.ebx", 0xf1bf8b39},
    {7, 0, &CpuidLeaf::ecx, "7.ecx", 0x0a405f42},
    {7, 0, &CpuidLeaf::edx, "7.edx", 0x0384010c},
    {7, 1, &CpuidLeaf::eax, "7.1.eax", 0x00c00030},
    {0xd, 1, &CpuidLeaf::eax, "d.1.eax", 0x00000007},
    {0x80000001, 0, &CpuidLeaf::ecx, "80000001.ecx", 0x00210161},
};

struct NamedBit {
    const char* word;
    int bit;
    const char* name;
};
const NamedBit named_bits[] = {
    {"1.ecx", 0, "sse3"},         {"1.ecx", 9, "ssse3"},      {"1.ecx", 12, "fma"},
    {"1.ecx", 19, "sse4_1"},      {"1.ecx", 20, "sse4_2"},    {"1.ecx", 22, "movbe"},
    {"1.ecx", 23, "popcnt"},      {"1.ecx", 25, "aes"},       {"1.ecx", 28, "avx"},
    {"1.ecx", 29, "f16c"},        {"1.ecx", 30, "rdrand"},    {"7.ebx", 0, "fsgsbase"},
    {"7.ebx", 3, "bmi1"},         {"7.ebx", 5, "avx2"},       {"7.ebx", 8, "bmi2"},
    {"7.ebx", 11, "rtm"},         {"7.ebx", 16, "avx512f"},   {"7.ebx", 17, "avx512dq"},
    {"7.ebx", 18, "rdseed"},      {"7.ebx", 19, "adx"},       {"7.ebx", 21, "avx512ifma"},
    {"7.ebx", 24, "clwb"},        {"7.ebx", 28, "avx512cd"},  {"7.ebx", 29, "sha_ni"},
    {"7.ebx", 30, "avx512bw"},    {"7.ebx", 31, "avx512vl"},  {"7.ecx", 1, "avx512_vbmi"},
    {"7.ecx", 8, "gfni"},         {"7.ecx", 9, "vaes"},       {"7.ecx", 10, "vpclmulqdq"},
    {"7.ecx", 11, "avx512_vnni"}, {"7.edx", 22, "amx_bf16"},  {"7.edx", 24, "amx_tile"},
    {"7.edx", 25, "amx_int8"},    {"7.1.eax", 4, "avx_vnni"}, {"7.1.eax", 5, "avx512_bf16"},
    {"d.1.eax", 1, "xsavec"},     {"80000001.ecx", 5, "abm"},
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
            return fmt::format("cpu feature {}", n.name);
        }
    }
    return fmt::format("cpu feature cpuid.{} bit {}", word, bit);
}

}  // namespace

std::vector<std::string> lacking_at(const HostDescription& acceptor,
                                    const HostDescription& initiator) {
    std::vector<std::string> lacking;
    if (acceptor.page_size != initiator.page_size) {
        lacking.push_back(fmt::format("page size {}", initiator.page_size));
    }
    for (const FeatureWord& w : feature_words) {
        uint32_t missing = word_of(initiator.cpu, w) & ~word_of(acceptor.cpu, w) & w.mask;
        for (int bit = 0; bit < 32; bit++) {
            if (missing >> bit & 1) lacking.push_back(name_of(w.name, bit));
        }
    }
    // The kernel saves and restores only what XCR0 enables; the layout goes with it.
    uint64_t states = initiator.cpu.xcr0 & ~acceptor.cpu.xcr0;
    if (states != 0) lacking.push_back(fmt::format("extended state {:#x} (xcr0)", states));
    return lacking;
}

}  // namespace gpr
