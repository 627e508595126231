// Calls that look up a path, and whose answer an acceptor may repeat while home says that it holds
// (monitor/home/lookups.h). Both nodes decide by this, so that they agree.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "syscall/marshal.h"

namespace gpr {

struct LookupCall {
    enum class Kind : uint8_t {
        status,           // struct stat
        extended_status,  // struct statx
        exists,           // access(2), whatever it asks for
        link,             // readlink(2)
        open,             // of what must be there already
        directory,        // getcwd(2)
    };
    Kind kind = Kind::status;
    bool follows = true;    // a symbolic link at the end of the path
    std::string_view path;  // ends neither with a slash nor with "." or ".."; points into the call
    uint32_t flags = 0;     // of extended_status; of exists: what is asked for
    uint32_t mask = 0;      // of extended_status
};

// nullopt: not such a call, or in a form for which home is always asked. All arguments but the path
// are good, so nothing fails before the path is looked up.
std::optional<LookupCall> lookup_of(const MarshalledCall& call);
// The same call about another name in the same directory, but for where its bytes are in memory.
// nullopt: that is not one that lookup_of() knows.
std::optional<MarshalledCall> beside(const MarshalledCall& call, std::string_view name);
// Whether lookup_of() may be something for a call with this number.
bool may_look_up(uint32_t number);

// What the call means for what is known of paths.
enum class OnLookups : uint8_t {
    nothing,
    forgets,      // its process, or a thread of it, may see other files under the same paths
    forgets_all,  // it changes files in a way that inotify does not tell
};
OnLookups on_lookups(uint32_t number, const uint64_t* args);

}  // namespace gpr
