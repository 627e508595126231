#include "tools/process_number.h"

#include <charconv>

namespace gpr {

Result<pid_t> process_number(const ParsedCommand& parsed, const std::string& example) {
    if (parsed.words.empty()) {
        return fail(fmt::format(
            "no process is named; write its number behind the options, as in '{}'", example));
    }
    const std::string& word = parsed.words.front();
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), pid);
    if (error != std::errc() || end != word.data() + word.size() || pid <= 0) {
        return fail(
            fmt::format("'{}' is not the number of a process; 'ps' or 'pidof NAME' says it", word));
    }
    return pid;
}

}  // namespace gpr
