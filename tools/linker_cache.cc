#include "tools/linker_cache.h"

#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>

namespace gpr {
namespace {

constexpr std::string_view magic = "glibc-ld.so.cache1.1";
constexpr int32_t libc6_x86_64 = 0x0303;  // FLAG_ELF_LIBC6 | FLAG_X8664_LIB64

struct Header {
    char magic[20];
    uint32_t entries;
    uint32_t string_bytes;
    uint32_t unused[5];
};
static_assert(sizeof(Header) == 48);

struct Entry {
    int32_t flags;
    uint32_t name, path;  // offsets of their strings, from the beginning of the header
    uint32_t os_version;
    uint64_t hwcap;
};
static_assert(sizeof(Entry) == 24);

std::string string_at(std::string_view bytes, uint32_t at) {
    if (at >= bytes.size()) return "";
    const std::string_view rest = bytes.substr(at);
    const size_t end = rest.find('\0');
    return end == std::string_view::npos ? "" : std::string(rest.substr(0, end));
}

}  // namespace

LinkerCache parse_linker_cache(std::string_view bytes) {
    LinkerCache cache;
    // The cache in an older format may come first, for older linkers.
    const size_t begin = bytes.find(magic);
    if (begin == std::string_view::npos || bytes.size() - begin < sizeof(Header)) return cache;
    bytes.remove_prefix(begin);
    Header header{};
    std::memcpy(&header, bytes.data(), sizeof header);
    for (uint64_t i = 0; i < header.entries; i++) {
        const uint64_t at = sizeof(Header) + i * sizeof(Entry);
        if (at + sizeof(Entry) > bytes.size()) break;
        Entry entry{};
        std::memcpy(&entry, bytes.data() + at, sizeof entry);
        if (entry.flags != libc6_x86_64 || entry.hwcap != 0) continue;
        std::string name = string_at(bytes, entry.name), path = string_at(bytes, entry.path);
        if (!name.empty() && !path.empty()) cache.emplace(std::move(name), std::move(path));
    }
    return cache;
}

LinkerCache read_linker_cache() {
    std::ifstream file("/etc/ld.so.cache", std::ios::binary);
    std::ostringstream bytes;
    bytes << file.rdbuf();
    return parse_linker_cache(bytes.str());
}

}  // namespace gpr
