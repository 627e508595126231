// Ends of threads in a mixed session: what the kernel writes on their behalf must reach every node.
#pragma once

#include "monitor/home/part.h"

namespace gpr::home {

class LastWords {
public:
    explicit LastWords(Home& home) : home_(home) {}

    void note_clear_tid(HomeThread& parent, HomeThread& child);
    Task<void> before_exit(HomeThread& thread, bool filtered);
    void tell_exit(HomeThread& thread);

private:
    Task<void> hold_last_words(HomeThread& thread, bool alone);

    Home& home_;
};

}  // namespace gpr::home
