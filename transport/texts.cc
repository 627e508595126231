#include "transport/texts.h"

#include <algorithm>

namespace gpr {

namespace {
constexpr size_t max_printable = 400;
}  // namespace

std::string printable(const std::string& text) {
    std::string out = text.substr(0, max_printable);
    std::replace_if(
        out.begin(), out.end(), [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, '?');
    return out;
}

void write_texts(const std::vector<std::string>& texts, capnp::List<capnp::Text>::Builder to) {
    for (unsigned i = 0; i < to.size(); ++i) to.set(i, texts[i]);
}

std::vector<std::string> read_texts(capnp::List<capnp::Text>::Reader from) {
    std::vector<std::string> texts;
    for (auto text : from) texts.emplace_back(text.cStr());
    return texts;
}

}  // namespace gpr
