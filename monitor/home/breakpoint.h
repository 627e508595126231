// A breakpoint that a thread at home has met: it is in a function that runs at the acceptor.
#pragma once

#include <signal.h>

#include <optional>
#include <string>

#include "base/address.h"
#include "monitor/rules/function_symbols.h"

namespace gpr::home {

struct Breakpoint {
    ChosenFunction function;
    std::string library;
    Range pages;  // that the function has a part in
    bool from_its_start = false;
    std::optional<siginfo_t> swallowed;  // a signal of the program's, by that of the breakpoint
};

}  // namespace gpr::home
