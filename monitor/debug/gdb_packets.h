// Packets of gdb's remote protocol: $content#checksum, with special bytes escaped. "GDB Remote
// Serial Protocol" in gdb's manual, section "Overview".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace gpr::debug {

// Content of a packet in either direction, with its escapes. gdb is told of it (PacketSize).
inline constexpr size_t most_packet_bytes = 16384;

// The packet that carries these bytes.
[[nodiscard]] std::string to_packet(std::string_view content);
// The longest beginning of the content that takes at most `room` bytes when it is escaped.
[[nodiscard]] std::string_view that_fit(std::string_view content, size_t room);

[[nodiscard]] std::string to_hex(std::string_view bytes);
[[nodiscard]] std::string to_hex(std::span<const std::byte> bytes);
// nullopt: not an even number of hexadecimal digits.
[[nodiscard]] std::optional<std::string> from_hex(std::string_view digits);
// A number as the protocol writes it: hexadecimal, highest digit first, without 0x.
[[nodiscard]] std::optional<uint64_t> to_number(std::string_view digits);
// Removes what is before the mark from the text, and the mark; without a mark all. Returns what was
// before it.
[[nodiscard]] std::string_view take_until(std::string_view& text, char mark);

// Parses bytes as they arrive. Never holds more than one packet.
class PacketReader {
public:
    enum class Kind : uint8_t {
        packet,
        interrupt,     // ^C
        acknowledged,  // +
        not_received,  // -: asks for the last answer again
        damaged,       // a packet with the wrong checksum
        too_long,      // a packet
    };
    struct Arrival {
        Kind kind = Kind::packet;
        std::string content;  // for `packet`, without escapes
    };

    // Takes bytes from the front until something is complete; nullopt if all were taken before.
    std::optional<Arrival> next(std::string_view& bytes);

private:
    enum class State : uint8_t { between, content, first_digit, second_digit };

    std::optional<Arrival> take_between(char byte);
    void take_content(char byte);
    Arrival finish();

    State state_ = State::between;
    std::string content_;
    bool too_long_ = false;
    bool escaped_ = false;
    size_t length_ = 0;  // with escapes
    uint8_t sum_ = 0;
    char digits_[2] = {};
};

}  // namespace gpr::debug
