// Every x86-64 system call: where it runs, what its arguments point to, how well it is supported.
//
// The classes are for a thread at an acceptor, while the process's resources are at home (node 0).
// A thread at home makes its calls itself; `home_notify` marks those that the supervisor has to see
// there as well.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "syscall/details.h"
#include "syscall/shape.h"

namespace gpr {

enum class Place : uint8_t {
    native,    // where the thread is
    fd_owner,  // on the node that owns its descriptors: here if it owns all of them, else at home
    home,      // in the thread's shadow on node 0
    coherent,  // changes something that every node must know
    special,   // done by the supervisor (clone, exec, exit, ...)
    refused,   // ENOSYS
};

enum class Support : uint8_t { full, partial, none };

// May be combined with |.
enum class Trait : uint16_t {
    none = 0,
    blocks = 1 << 0,         // may sleep for an unlimited time
    never_returns = 1 << 1,  // exit, a successful exec, sigreturn
    changes_fds = 1 << 2,    // opens, closes or duplicates descriptors
    home_notify = 1 << 3,    // home's filter reports it as well
    maps_memory = 1 << 4,    // changes the address space
    polls = 1 << 5,          // waits for descriptors that are listed in memory
    by_rule = 1 << 6,        // a split rule may assign it to an acceptor
    fd_first = 1 << 7,       // checks its first argument, a descriptor, before anything else
    told_unasked = 1 << 8,   // the other node is told, and nobody waits until it has done the same
    // It may change the content or size of a file, or order accesses with processes outside of the
    // session.
    modifies_files = 1 << 9,
    of_split_only = 1 << 10,  // an unsplit child is split before it makes the call
};
constexpr Trait operator|(Trait a, Trait b) {
    return static_cast<Trait>(static_cast<uint16_t>(a) | static_cast<uint16_t>(b));
}

// What a supervisor does with a call that its filter reports: each value names one method there.
// Only the table knows which number means which.
enum class AtAcceptor : uint8_t {
    as_placed,  // for file names as the rules say, else like `forward`
    forward,    // home makes it
    action,
    advise,
    affinity,
    affinity_query,
    alt_stack,
    clone,
    close,
    close_range,
    cpu_state,
    duplicate,
    epoll_control,
    exit,
    exit_group,
    futex,
    handler_return,
    interval_timer,
    ioctl,
    limit,
    map,
    mask,
    memory_policy,
    mirror,
    move,
    no_key,
    pin,
    process_state,
    protect,
    residence,
    restart,
    select,
    set_break,
    send_message,
    suspend,
    sync,
    tid_address,
    timer,
    unlock,
    unmap,
    wait,
};
enum class AtHome : uint8_t {
    as_placed,  // made by the thread, after what its shared memory and files need
    let_run,    // likewise
    action,
    advise,
    affinity,
    aio,
    alt_stack,
    barrier,
    children,
    cpu_state,
    faultfd,
    fork,
    futex,
    handler_return,
    ioctl,
    limit,
    limit_query,
    lock,
    mask,
    memory,
    memory_policy,
    no_key,
    process_state,
    residence,
    ring,
    sync,
    tid_address,
    timer,
    truncate,
    usage,
};
struct Handlers {
    AtAcceptor there = AtAcceptor::as_placed;
    AtHome here = AtHome::as_placed;
};

struct Row {
    uint16_t number = 0;
    const char* name = "";
    Place place = Place::refused;
    Support support = Support::full;
    Trait traits = Trait::none;
    std::array<Argument, 6> arguments{};
    const char* caveat = "";
    Handlers handlers{};  // always set in coherent and special rows
    Details details{};

    [[nodiscard]] constexpr bool has(Trait t) const {
        return (static_cast<uint16_t>(traits) & static_cast<uint16_t>(t)) != 0;
    }
    // The index of the argument that names the call's file, if that may be another node's; else -1.
    [[nodiscard]] constexpr int path_argument() const {
        for (size_t i = 0; i < arguments.size(); i++) {
            if (arguments[i].names_file) return static_cast<int>(i);
        }
        return -1;
    }
    // Bit i: argument i is a descriptor.
    [[nodiscard]] constexpr uint32_t fd_arguments() const {
        uint32_t places = 0;
        for (size_t i = 0; i < arguments.size(); i++) {
            if (arguments[i].kind == Kind::fd) places |= 1u << i;
        }
        return places;
    }
    // Whether it has a pointer that we do not follow: the kernel works on the program's own memory.
    [[nodiscard]] constexpr bool points_anywhere(const std::array<uint64_t, 6>& args) const {
        for (size_t i = 0; i < args.size(); i++) {
            if (arguments[i].kind == Kind::raw && args[i] != 0) return true;
        }
        return false;
    }
    [[nodiscard]] constexpr bool blocks() const { return has(Trait::blocks); }
    [[nodiscard]] constexpr bool never_returns() const { return has(Trait::never_returns); }
    [[nodiscard]] constexpr bool changes_fds() const { return has(Trait::changes_fds); }
    // Some files describe the process itself: see Conditions::stops_opens().
    [[nodiscard]] constexpr bool opens_by_name() const {
        return changes_fds() && path_argument() >= 0;
    }
    [[nodiscard]] constexpr bool polls() const { return has(Trait::polls); }
    // Whether it fails with EBADF whatever the other arguments are, because its descriptor is
    // negative.
    [[nodiscard]] constexpr bool lacks_fd(const std::array<uint64_t, 6>& args) const {
        return has(Trait::fd_first) && static_cast<int32_t>(args[0]) < 0;
    }
    [[nodiscard]] constexpr bool by_rule() const { return has(Trait::by_rule); }
    [[nodiscard]] constexpr bool told_unasked() const { return has(Trait::told_unasked); }
    [[nodiscard]] constexpr bool home_notify() const { return has(Trait::home_notify); }
};

// One past the highest number in the table, which has gaps (337..423).
inline constexpr uint32_t syscall_limit = 472;

// Whether the row of this number has the trait.
bool is_told_unasked(uint64_t number);

// nullptr: unknown, to be refused with ENOSYS. A seccomp `nr` is an int, hence 32 bits.
const Row* find_row(uint32_t number);

// All empty for a number without a row.
const Details& details_of(uint64_t number);
inline MemoryCall memory_call_of(uint64_t number) { return details_of(number).memory; }
bool has_trait(uint64_t number, Trait trait);
// Whether the call may move the break otherwise than brk(2) does, change what brk(2) may do, or
// make another process that shares the memory.
bool concerns_break(uint64_t number);
Handlers handlers_of(uint64_t number);

// Sorted by number.
std::span<const Row* const> all_rows();

const char* name_of(Place place);
const char* name_of(Support support);

// An argument value that changes where a call runs. unknown: EINVAL, as from a kernel that does not
// know the value. no_fd: EBADF, without asking any node.
enum class Verdict : uint8_t { allow, notify, refuse, unknown, no_fd };
// whole_session: not mixed, so that at home only children run program code.
enum class Condition : uint8_t {
    always,
    mixed_session,
    whole_session,
    watched_calls,
    watched_trap
};

// What is true in a session.
struct Conditions {
    // Threads of one process live on two nodes, so more has to be reported: futex wakes, PI
    // operations, forks, returns from handlers, opens.
    bool mixed_session = false;
    // A CallWatch reports private futex wakes without stopping the caller, and stops threads that
    // have opened a file that shows a process.
    bool watched_calls = false;
    // The program's code has breakpoints, so we must know whether SIGTRAP is blocked.
    bool watched_trap = false;

    [[nodiscard]] bool meet(Condition condition) const;
    // Whether every open at home is reported.
    [[nodiscard]] bool stops_opens() const { return mixed_session && !watched_calls; }
};

struct ArgumentRule {
    uint16_t number;
    uint8_t argument;
    uint32_t mask;  // applied to the low 32 bits
    uint32_t value;
    Verdict acceptor;
    Verdict home;
    Condition condition;
    const char* what;
};
std::span<const ArgumentRule> argument_rules();

// Where a call with these arguments runs for a thread at an acceptor with descriptors from fd_base
// on: the filter's decision, for code that has the arguments.
Verdict acceptor_verdict(uint32_t number, const std::array<uint64_t, 6>& args, uint32_t fd_base,
                         const Conditions& conditions);
Verdict home_verdict(uint32_t number, const std::array<uint64_t, 6>& args,
                     const Conditions& conditions);

}  // namespace gpr
