// Threads of a mixed session end: what the kernel does in their name must reach every node.
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
