#include "monitor/debug/gdb_packets.h"

#include <charconv>

namespace gpr::debug {

namespace {
constexpr char escape = '}';
constexpr char escape_bit = 0x20;
constexpr char control_c = 0x03;

// Bytes that must be escaped. gdb takes '*' for the beginning of a run-length encoding.
bool has_meaning(char byte) { return byte == '$' || byte == '#' || byte == escape || byte == '*'; }

constexpr char hex_digits[] = "0123456789abcdef";

int value_of(char digit) {
    if (digit >= '0' && digit <= '9') return digit - '0';
    if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
    return -1;
}
}  // namespace

std::string to_packet(std::string_view content) {
    std::string packet = "$";
    packet.reserve(content.size() + 4);
    for (const char byte : content) {
        if (has_meaning(byte))
            packet += {escape, static_cast<char>(byte ^ escape_bit)};
        else
            packet += byte;
    }
    uint8_t sum = 0;
    for (const char byte : std::string_view(packet).substr(1)) sum += static_cast<uint8_t>(byte);
    packet += {'#', hex_digits[sum >> 4], hex_digits[sum & 0xf]};
    return packet;
}

std::string_view that_fit(std::string_view content, size_t room) {
    size_t taken = 0;
    for (size_t at = 0; at < content.size(); at++) {
        taken += has_meaning(content[at]) ? 2 : 1;
        if (taken > room) return content.substr(0, at);
    }
    return content;
}

std::string to_hex(std::string_view bytes) {
    std::string digits;
    digits.reserve(2 * bytes.size());
    for (const char byte : bytes) {
        const auto value = static_cast<uint8_t>(byte);
        digits += {hex_digits[value >> 4], hex_digits[value & 0xf]};
    }
    return digits;
}

std::string to_hex(std::span<const std::byte> bytes) {
    return to_hex(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

std::optional<std::string> from_hex(std::string_view digits) {
    if (digits.size() % 2 != 0) return std::nullopt;
    std::string bytes;
    bytes.reserve(digits.size() / 2);
    for (size_t at = 0; at < digits.size(); at += 2) {
        const int high = value_of(digits[at]);
        const int low = value_of(digits[at + 1]);
        if (high < 0 || low < 0) return std::nullopt;
        bytes += static_cast<char>(high << 4 | low);
    }
    return bytes;
}

std::optional<uint64_t> to_number(std::string_view digits) {
    uint64_t number = 0;
    const char* end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, number, 16);
    if (error != std::errc() || stop != end) return std::nullopt;
    return number;
}

std::string_view take_until(std::string_view& text, char mark) {
    const size_t at = text.find(mark);
    const std::string_view before = text.substr(0, at);
    text = at == std::string_view::npos ? std::string_view() : text.substr(at + 1);
    return before;
}

std::optional<PacketReader::Arrival> PacketReader::next(std::string_view& bytes) {
    while (!bytes.empty()) {
        const char byte = bytes.front();
        bytes.remove_prefix(1);
        switch (state_) {
            case State::between:
                if (auto arrival = take_between(byte)) return arrival;
                break;
            case State::content: take_content(byte); break;
            case State::first_digit:
                digits_[0] = byte;
                state_ = State::second_digit;
                break;
            case State::second_digit:
                digits_[1] = byte;
                state_ = State::between;
                return finish();
        }
    }
    return std::nullopt;
}

// Between packets other bytes are noise, which the protocol lets both sides ignore.
std::optional<PacketReader::Arrival> PacketReader::take_between(char byte) {
    switch (byte) {
        case '+': return Arrival{Kind::acknowledged, {}};
        case '-': return Arrival{Kind::not_received, {}};
        case control_c: return Arrival{Kind::interrupt, {}};
        case '$':
            state_ = State::content;
            content_.clear();
            too_long_ = escaped_ = false;
            length_ = 0;
            sum_ = 0;
            return std::nullopt;
        default: return std::nullopt;
    }
}

void PacketReader::take_content(char byte) {
    if (byte == '#') {
        state_ = State::first_digit;
        return;
    }
    if (byte == '$') {  // the end of the previous packet was lost
        state_ = State::between;
        take_between(byte);
        return;
    }
    sum_ += static_cast<uint8_t>(byte);
    too_long_ = ++length_ > most_packet_bytes;
    if (too_long_) {
        content_.clear();
    } else if (escaped_) {
        content_ += static_cast<char>(byte ^ escape_bit);
        escaped_ = false;
    } else if (byte == escape) {
        escaped_ = true;
    } else {
        content_ += byte;
    }
}

PacketReader::Arrival PacketReader::finish() {
    const int high = value_of(digits_[0]);
    const int low = value_of(digits_[1]);
    if (high < 0 || low < 0 || (high << 4 | low) != sum_) return {Kind::damaged, {}};
    if (too_long_) return {Kind::too_long, {}};
    return {Kind::packet, std::move(content_)};
}

}  // namespace gpr::debug
