#include "syscall/call_choice.h"

#include <fmt/format.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>

namespace gpr {
namespace {

struct Family {
    int number;
    std::string_view name;
};

constexpr std::array families = {
    Family{AF_UNIX, "unix"},
    Family{AF_UNIX, "local"},
    Family{AF_INET, "inet"},
    Family{AF_AX25, "ax25"},
    Family{AF_IPX, "ipx"},
    Family{AF_APPLETALK, "appletalk"},
    Family{AF_X25, "x25"},
    Family{AF_INET6, "inet6"},
    Family{AF_KEY, "key"},
    Family{AF_NETLINK, "netlink"},
    Family{AF_PACKET, "packet"},
    Family{AF_RDS, "rds"},
    Family{AF_PPPOX, "pppox"},
    Family{AF_LLC, "llc"},
    Family{AF_IB, "ib"},
    Family{AF_MPLS, "mpls"},
    Family{AF_CAN, "can"},
    Family{AF_TIPC, "tipc"},
    Family{AF_BLUETOOTH, "bluetooth"},
    Family{AF_ALG, "alg"},
    Family{AF_VSOCK, "vsock"},
    Family{AF_KCM, "kcm"},
    Family{AF_QIPCRTR, "qipcrtr"},
    Family{AF_SMC, "smc"},
    Family{AF_XDP, "xdp"},
};

bool is_same_word(std::string_view a, std::string_view b) {
    return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

bool makes_sockets(const RemoteCall& call) {
    return call.number == SYS_socket || call.number == SYS_socketpair;
}

}  // namespace

std::optional<int> family_called(std::string_view name) {
    for (const Family& family : families) {
        if (is_same_word(family.name, name)) return family.number;
    }
    return std::nullopt;
}

std::string name_of_family(int number) {
    for (const Family& family : families) {
        if (family.number == number) return std::string(family.name);
    }
    return "";
}

std::vector<std::string_view> family_names() {
    std::vector<std::string_view> names;
    for (const Family& family : families) {
        if (family.name != "local") names.push_back(family.name);
    }
    return names;
}

const Row* find_row(std::string_view name) {
    auto rows = all_rows();
    auto found = std::ranges::find_if(rows, [&](const Row* row) { return name == row->name; });
    return found == rows.end() ? nullptr : *found;
}

std::string why_not_remote(const Row& row) {
    if (row.by_rule()) return "";
    switch (row.place) {
        case Place::refused:
            return fmt::format("programs under gpr do not have it: {}", row.caveat);
        case Place::coherent:
        case Place::special: return "what it changes must be the same on every node";
        case Place::fd_owner:
            if (row.path_argument() < 0) {
                return "it runs where its descriptor is; give the acceptor the call that makes "
                       "that, or the file, with path: or dev:";
            }
            break;
        case Place::native: return "it is about the thread itself, and runs where that is";
        case Place::home: break;
    }
    if (row.path_argument() >= 0) return "it is about a file by name; use path:";
    return "what it is about is home's";
}

std::string rule_text(const RemoteCall& call) {
    if (call.family != RemoteCall::any_family) return "sock:" + name_of_family(call.family);
    const Row* row = find_row(call.number);
    return fmt::format("sys:{}", row ? row->name : std::to_string(call.number));
}

NetworkNeeds network_needs(std::span<const RemoteCall> calls) {
    NetworkNeeds needs;
    for (const RemoteCall& call : calls) {
        // Socket pairs are AF_UNIX, which connects only processes in the box.
        bool inside = call.family == AF_UNIX ||
                      (call.number == SYS_socketpair && call.family == RemoteCall::any_family);
        if (!makes_sockets(call) || inside) continue;
        if (needs.network == nullptr) needs.network = &call;
        bool raw = call.family == AF_PACKET || call.family == AF_XDP;
        if (raw && needs.raw == nullptr) needs.raw = &call;
    }
    return needs;
}

bool make_unix_sockets(std::span<const RemoteCall> calls) {
    return std::ranges::any_of(calls, [](const RemoteCall& call) {
        bool may = call.family == AF_UNIX || call.family == RemoteCall::any_family;
        return makes_sockets(call) && may;
    });
}

}  // namespace gpr
