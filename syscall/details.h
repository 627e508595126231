// What supervisors have to know of a call besides where it runs: what it does, and the index of the
// arguments that say how. -1: there is no such argument.
#pragma once

#include <cstdint>

namespace gpr {

// What the call does to its caller's address space.
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

// Data that it moves between memory and the descriptor in its first argument.
struct Transfer {
    bool reads = false, writes = false;
    bool vector = false;     // with struct iovec
    bool at_offset = false;  // in argument 3; else at the descriptor's own offset
};

// A signal that it sends, and to whom.
struct SentPlaces {
    int8_t signal = -1, process = -1, thread = -1;
};

// A resource limit: whose, and pointers to struct rlimit.
struct LimitPlaces {
    int8_t resource = -1, process = -1, given = -1, before = -1;
};

// A timer in its first argument: pointers to its settings, and flags.
struct TimerPlaces {
    bool asks = false;  // whether it sets or queries one
    int8_t given = -1, before = -1, flags = -1;
};

// A signal mask that is in force while the call waits.
struct MaskPlace {
    int8_t argument = -1;
    bool in_pair = false;  // the argument points to a pair of pointer and size
};

// What the call means for a file that home has delegated to an acceptor: DelegatedCall.
enum class OnDelegated : uint8_t {
    gives_back,  // if one of its descriptors is that file's
    gives_back_all,
    keeps,  // uses neither the file's offset, nor makes another descriptor of it
    reads,
    lists,  // getdents64(2)
    seeks,
    status,     // fstat(2)
    status_at,  // fstatat(2)
    ioctl,
    fcntl,
};

struct Details {
    MemoryCall memory = MemoryCall::none;
    Transfer transfer{};
    SentPlaces sends{};
    LimitPlaces limit{};
    TimerPlaces timer{};
    MaskPlace mask{};
    OnDelegated on_delegated = OnDelegated::gives_back;
    uint32_t fills_most = 0;  // bytes, whatever room the call is given; 0: it depends
};

}  // namespace gpr
