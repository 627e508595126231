// Which system calls split rules may assign to an acceptor, and the names that rules use.
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

// Family names as in `man 2 socket`, without AF_, in either case: "inet6", "UNIX". nullopt:
// unknown.
std::optional<int> family_called(std::string_view name);
// Empty if the family has no name.
std::string name_of_family(int family);
// Sorted by number, without duplicates.
std::vector<std::string_view> family_names();

// By its name in the table; nullptr if there is no such call.
const Row* find_row(std::string_view name);

// Why no rule can assign this call to the acceptor; empty if one can.
std::string why_not_remote(const Row& row);

// `sock:inet` or `sys:uname`.
std::string rule_text(const RemoteCall& call);

// What a session needs of an acceptor for these calls.
struct NetworkNeeds {
    const RemoteCall* network = nullptr;  // the first one that needs a network
    const RemoteCall* raw = nullptr;      // the first one that needs CAP_NET_RAW, too
};
NetworkNeeds network_needs(std::span<const RemoteCall> calls);

// Whether they make AF_UNIX sockets, which can pass descriptors.
bool make_unix_sockets(std::span<const RemoteCall> calls);

}  // namespace gpr
