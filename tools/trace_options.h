// What a trace shall show, as strace's -e has it.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "bpf/call_trace_layout.h"

namespace gpr {

struct TraceChoice {
    gpr_trace_order order{};
    std::set<int> hidden_signals;
    // Not shown although it is reported: it says where the program begins.
    bool hides_execve = false;
};

// expressions: of -e, in order. bytes: of strings; a number in words.
Result<TraceChoice> trace_choice(const std::vector<std::string>& expressions,
                                 const std::string& bytes, bool stacks);
// For a program that is traced from its first call on.
void want_execve(TraceChoice& choice);
// Hexadecimal digits, as the session takes it.
std::string order_digits(const gpr_trace_order& order);
// Words that may follow `-e trace=`, for completion.
std::vector<std::string> trace_words();

}  // namespace gpr
