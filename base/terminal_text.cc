#include "base/terminal_text.h"

#include <cstddef>

namespace gpr {

namespace {

// Bytes of the UTF-8 character that begins there; 0: there is none.
size_t character_at(const std::string& text, size_t at) {
    const auto byte = [&](size_t i) {
        return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U;
    };
    const unsigned first = byte(0);
    const size_t length = first < 0x80                     ? 1
                          : first >= 0xc2 && first < 0xe0  ? 2
                          : first >= 0xe0 && first < 0xf0  ? 3
                          : first >= 0xf0 && first <= 0xf4 ? 4
                                                           : 0;
    for (size_t i = 1; i < length; i++) {
        if ((byte(i) & 0xc0) != 0x80) return 0;
    }
    return length;
}

}  // namespace

std::string without_controls(const std::string& text, bool keeps_lines) {
    std::string clean;
    for (size_t at = 0; at < text.size();) {
        const size_t length = character_at(text, at);
        const auto first = static_cast<unsigned char>(text[at]);
        const bool is_c1 =
            length == 2 && first == 0xc2 && static_cast<unsigned char>(text[at + 1]) < 0xa0;
        const bool is_control = length == 0 || is_c1 || first < ' ' || first == 0x7f;
        if (is_control && !(keeps_lines && first == '\n')) {
            clean += '?';
        } else {
            clean.append(text, at, length);
        }
        at += length == 0 ? 1 : length;
    }
    return clean;
}

}  // namespace gpr
