// The names that values of arguments have: O_RDONLY|O_CLOEXEC. Made from the system's headers by
// flag_tables.py.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gpr {

struct FlagName {
    const char* name;
    uint64_t value;
};

struct FlagSet {
    std::span<const FlagName> names;  // those with many bits first
    uint64_t field;                   // these bits are one of the names, the others are flags
};

// Which argument of which call, or member of which structure, has these names.
struct FlagUse {
    const char* call;
    const char* place;  // the argument's index, "result", or the member's name
    FlagSet set;
};
std::span<const FlagUse> flag_uses();

// nullptr: its values have no names.
const FlagSet* flags_of(std::string_view call, std::string_view place);
// What has no name is a number.
std::string flag_text(const FlagSet& set, uint64_t value);

// "SIGCHLD"; a real-time signal is "SIGRT_1".
std::string signal_name(int signal);
// "ENOENT"; empty: unknown.
std::string error_name(int error);

}  // namespace gpr
