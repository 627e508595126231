// What `gpr exec` was asked to do, after flags, environment and configuration are merged. Plain
// data: addresses and patterns are still as the user typed them.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace gpr {

struct AcceptorAddress {
    std::string name;     // the user's name for the node; "1", "2", ... where none was given
    std::string address;  // HOST:PORT, [V6]:PORT, unix:/path, or local_acceptor

    bool operator==(const AcceptorAddress&) const = default;
    [[nodiscard]] bool is_local() const;
};

// The address that stands for an acceptor inside this command.
inline constexpr const char* local_acceptor = "local";

inline bool AcceptorAddress::is_local() const { return address == local_acceptor; }

enum class SplitKind {
    all,      // the whole program runs on the node
    lib,      // code of the libraries whose path or name matches runs there only
    fn,       // exported functions of these libraries run there only
    home,     // code that matches runs at home only
    chaos,    // all threads cross at random, for testing
    path,     // matching files are the node's
    missing,  // matching files that home lacks are the node's
    dev,      // matching devices are the node's
    sock,     // sockets of a family are made on the node
    sys,      // a system call runs on the node
};

struct SplitRule {
    SplitKind kind = SplitKind::all;
    // Glob of a library's path or file name, a socket family, the name of a system call, or the
    // user's seed; else empty.
    std::string pattern;
    std::string node;      // an AcceptorAddress::name; empty for `home`
    uint64_t seed = 0;     // for `chaos`: of the random numbers, not 0
    std::string target;    // for `path`: what the node shows there; empty: its own of that name
    std::string profile;   // the rule's profile; empty: none
    bool standby = false;  // its profile takes effect only when the program uses its files
    bool rests = false;    // for `all`: a process begins at home, and goes when that is of use
    std::string symbols;   // for `fn`: glob of the functions' names
    uint8_t node_id = 1;   // number of `node`: its place among the acceptors; 0 for `home`

    bool operator==(const SplitRule&) const = default;
};

// Whether the rule is about files rather than code.
inline bool is_about_files(SplitKind kind) {
    return kind == SplitKind::path || kind == SplitKind::missing || kind == SplitKind::dev;
}

// Whether the rule says where code runs.
inline bool is_about_code(SplitKind kind) {
    return !is_about_files(kind) && kind != SplitKind::sock && kind != SplitKind::sys;
}

struct StatsOptions {
    bool enabled = false;
    std::string file;  // gets JSON; empty: text on stderr
};

struct LogOptions {
    std::string file;               // empty: stderr, if the user wants a log there
    std::string level = "warning";  // trace, debug, info, warning, error, off
    bool on_stderr = false;
};

struct Variable {
    std::string name;
    std::optional<std::string> value;  // nullopt: the variable must not be set
    bool operator==(const Variable&) const = default;
};

struct ExecOptions {
    std::vector<AcceptorAddress> acceptors;  // at least one; node number is index + 1
    std::vector<SplitRule> rules;            // in the user's order; at least one
    std::vector<std::string> devices;        // of the acceptor, as its inventory names them
    // How many devices to get for this session alone; 0: share those in `devices`.
    unsigned device_count = 0;
    std::vector<Variable> variables;  // to change in the program's environment
    std::string config_file;          // the file that was read; empty: none
    std::string token_file;           // empty: none (allowed for `local` only)
    StatsOptions stats;
    LogOptions log;
    std::string metrics;      // where its counts can be fetched; empty: nowhere
    std::string record_file;  // for a record of what the directory does; empty: none
    bool mask_cpu = false;    // hide CPU features that the acceptor lacks from the C library
    bool bpf = true;          // use BPF where the kernels allow it
    bool gravity = true;      // threads in neutral code go where their calls and pages are
    std::optional<unsigned> goes_after_ms;     // under `auto`: when a resting process goes anyway
    std::optional<unsigned> returns_after_ms;  // when it returns to rest anyway
    bool plain_allowed = false;                // TCP without TLS, because the user said so
    bool attaches = false;                     // the program runs already, at home
    std::string program;                       // as typed: argv[0] of the program
    std::string program_path;                  // what execve gets, found in PATH
    std::vector<std::string> args;             // without argv[0]
};

// Exit statuses of gpr itself, the same as those of env and nohup.
inline constexpr int exit_gpr_failed = 125;
inline constexpr int exit_cannot_execute = 126;
inline constexpr int exit_not_found = 127;

}  // namespace gpr
