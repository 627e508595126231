// Calls that look up a path, and whose answer an acceptor may repeat while home says that it holds
// (monitor/home/lookups.h). Both nodes decide by this, so that they agree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

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

inline bool tells_status(const LookupCall& call) {
    return call.kind == LookupCall::Kind::status || call.kind == LookupCall::Kind::extended_status;
}

// nullopt: not such a call, or in a form for which home is always asked. All arguments but the path
// are good, so nothing fails before the path is looked up.
std::optional<LookupCall> lookup_of(const MarshalledCall& call);
// The same call about another path, but for where its bytes are in memory. nullopt: that is not one
// that lookup_of() knows.
std::optional<MarshalledCall> with_path(const MarshalledCall& call, std::string_view path);
// The number and the arguments of the same call, of those that tell a status, if it followed a link
// at the end of the path.
std::pair<uint32_t, SyscallArguments> following_links(const MarshalledCall& call);
// What comes before the last part of a path, as it is written; with a slash at its end, or empty.
std::string_view directory_part(std::string_view path);
// The answer, in the form of gather(), of a call that tells this status (struct stat or statx).
// Empty: it has no room for that.
std::vector<std::byte> answer_with(const MarshalledCall& call, std::span<const std::byte> status);
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
