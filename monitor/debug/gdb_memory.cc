#include "monitor/debug/gdb_memory.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "monitor/debug/gdb_packets.h"

namespace gpr::debug {

namespace {

const char* const bad_packet = "E16";   // EINVAL
const char* const bad_address = "E0e";  // EFAULT

struct Place {
    Address address;
    uint64_t length = 0;
};

std::optional<Place> parse_place(std::string_view text) {
    const auto address = to_number(take_until(text, ','));
    const auto length = to_number(text);
    if (!address || !length) return std::nullopt;
    return Place{{*address}, *length};
}

}  // namespace

Task<std::string> read_memory(DebuggeeMemory& memory, std::string place, MemoryForm form) {
    const auto asked = parse_place(place);
    if (!asked) co_return bad_packet;
    const bool binary = form == MemoryForm::binary;
    // The range must not wrap around at the end of the address space.
    const uint64_t room = std::min<uint64_t>(most_packet_bytes / 2, -1 - asked->address.value);
    std::vector<std::byte> bytes(std::min(asked->length, room));
    std::string answer = binary ? "b" : "";
    if (bytes.empty()) co_return answer;
    std::span<std::byte> all(bytes);
    const size_t got = co_await memory.read(asked->address, all);
    if (got == 0) co_return bad_address;
    const std::span<const std::byte> known = all.first(std::min(got, all.size()));
    if (!binary) co_return to_hex(known);
    const std::string_view text(reinterpret_cast<const char*>(known.data()), known.size());
    answer += that_fit(text, most_packet_bytes - answer.size());
    co_return answer;
}

Task<std::string> write_memory(DebuggeeMemory& memory, std::string what, MemoryForm form) {
    std::string_view bytes = what;
    const auto asked = parse_place(take_until(bytes, ':'));
    if (!asked) co_return bad_packet;
    const auto content = form == MemoryForm::binary ? std::string(bytes) : from_hex(bytes);
    if (!content || content->size() != asked->length) co_return bad_packet;
    if (content->empty()) co_return "OK";  // gdb asks whether the packet is known
    const auto data = std::as_bytes(std::span(*content));
    const bool written = co_await memory.write(asked->address, data);
    co_return written ? "OK" : bad_address;
}

}  // namespace gpr::debug
