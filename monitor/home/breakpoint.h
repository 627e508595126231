// A breakpoint that a thread at home has hit, in a function that runs at an acceptor.
#pragma once

#include <signal.h>

#include <optional>
#include <string>

#include "base/address.h"
#include "mm/chosen_functions.h"

namespace gpr::home {

struct Breakpoint {
    ChosenFunction function;
    std::string library;
    Range pages;  // the pages that contain the function
    bool from_its_start = false;
    // A signal of the program's that was merged with the breakpoint's.
    std::optional<siginfo_t> swallowed;
};

}  // namespace gpr::home
