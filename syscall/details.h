// What supervisors have to know of a call besides where it runs: what it does, and which arguments
// say what. An argument of -1: there is none.
#pragma once

#include <cstdint>

namespace gpr {

// What it does to its caller's address space.
enum class MemoryCall : uint8_t {
    none,
    map,
    unmap,
    protect,
    move,
    remap_file,
    advise,
    set_break,
    attach,
    detach,
    lock,
    lock_all,
    unlock,
    unlock_all,
    seal,
};

// Data that it moves between memory and the descriptor that is its first argument.
struct Transfer {
    bool reads = false, writes = false;
    bool vector = false;     // of struct iovec
    bool at_offset = false;  // argument 3; else the descriptor's own
};

// A signal that it sends: which, and to whom.
struct SentPlaces {
    int8_t signal = -1, process = -1, thread = -1;
};

// A resource limit: of whom, and pointers to struct rlimit.
struct LimitPlaces {
    int8_t resource = -1, process = -1, given = -1, before = -1;
};

// A timer that is its first argument: pointers to its settings, and flags.
struct TimerPlaces {
    bool asks = false;  // it sets one, or asks for what it does
    int8_t given = -1, before = -1, flags = -1;
};

// A signal mask that is in force while it waits.
struct MaskPlace {
    int8_t argument = -1;
    bool in_pair = false;  // it points to the pointer and a size
};

struct Details {
    MemoryCall memory = MemoryCall::none;
    Transfer transfer{};
    SentPlaces sends{};
    LimitPlaces limit{};
    TimerPlaces timer{};
    MaskPlace mask{};
    uint32_t fills_most = 0;  // bytes, whatever room it is given; 0: it depends
};

}  // namespace gpr
