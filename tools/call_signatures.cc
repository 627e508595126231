#include "tools/call_signatures.h"

#include <map>
#include <sstream>

#include "call_signatures_text.h"

namespace gpr {

namespace {

using Signatures = std::map<std::string, std::vector<Parameter>, std::less<>>;

std::vector<Parameter> parameters_of(std::string_view text) {
    std::vector<Parameter> parameters;
    while (!text.empty()) {
        const size_t end = std::min(text.find(", "), text.size());
        const std::string_view one = text.substr(0, end);
        const size_t space = one.rfind(' ');
        if (space != std::string_view::npos) {
            parameters.push_back(
                {std::string(one.substr(0, space)), std::string(one.substr(space + 1))});
        }
        text.remove_prefix(std::min(end + 2, text.size()));
    }
    return parameters;
}

Signatures read_all() {
    Signatures all;
    std::istringstream lines(std::string(reinterpret_cast<const char*>(call_signatures_text),
                                         call_signatures_text_size));
    for (std::string line; std::getline(lines, line);) {
        const size_t open = line.find('('), close = line.rfind(')');
        if (line.starts_with('#') || open == std::string::npos || close == std::string::npos) {
            continue;
        }
        all[line.substr(0, open)] =
            parameters_of(std::string_view(line).substr(open + 1, close - open - 1));
    }
    return all;
}

}  // namespace

std::string Parameter::pointee() const {
    if (!is_pointer()) return "";
    std::string what = type.substr(0, type.size() - 1);
    if (what.starts_with("const ")) what.erase(0, 6);
    if (what.ends_with(" const")) what.resize(what.size() - 6);
    return what;
}

const std::vector<Parameter>* signature_of(std::string_view call) {
    static const Signatures all = read_all();
    const auto found = all.find(call);
    return found == all.end() ? nullptr : &found->second;
}

}  // namespace gpr
