// Which system calls split rules may give to the acceptor, and what they are called there.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/remote_call.h"
#include "base/result.h"
#include "syscall/table.h"

namespace gpr {

// As `man 2 socket` has them, without AF_, in any case: "inet6", "UNIX". None: no such family.
std::optional<int> family_called(std::string_view name);
// Empty: one without a name.
std::string name_of_family(int family);
// In the order of their numbers, each once.
std::vector<std::string_view> family_names();

// By its name in the table; nullptr: Linux has none that is called so.
const Row* find_row(std::string_view name);

// Why a rule cannot give this call to the acceptor; empty: it can.
std::string why_not_remote(const Row& row);

// `sock:inet` or `sys:uname`.
std::string rule_text(const RemoteCall& call);

// What a session needs of the acceptor for these calls.
struct NetworkNeeds {
    const RemoteCall* network = nullptr;  // the first one that needs the host's network
    const RemoteCall* raw = nullptr;      // the first one that needs CAP_NET_RAW as well
};
NetworkNeeds network_needs(std::span<const RemoteCall> calls);

// They make sockets of the family AF_UNIX, through which descriptors can be sent.
bool make_unix_sockets(std::span<const RemoteCall> calls);

}  // namespace gpr
