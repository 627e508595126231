#include "acceptor/daemon/network_allowance.h"

#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>

#include "syscall/call_choice.h"

namespace gpr {
namespace {

// Network namespaces do not separate sockets of other families, such as AF_VSOCK.
bool keeps_to_network(const RemoteCall& call) {
    if (call.number != SYS_socket) return true;
    return call.family == AF_INET || call.family == AF_INET6 || call.family == AF_NETLINK ||
           call.family == AF_UNIX;
}

}  // namespace

Result<> check_calls(std::span<const RemoteCall> calls, const NetworkAllowance& allowed) {
    for (const RemoteCall& call : calls) {
        const Row* row = find_row(call.number);
        if (row == nullptr) return fail(fmt::format("this acceptor has no call {}", call.number));
        const auto why_not = why_not_remote(*row);
        if (!why_not.empty()) return fail(fmt::format("call {}: {}", row->name, why_not));
    }
    const NetworkNeeds needs = network_needs(calls);
    if (needs.network != nullptr && !allowed.sockets) {
        return fail(
            fmt::format("split rule '{}': this acceptor gives sessions no network; its "
                        "administrator can, with 'gpr acceptor --allow-network'",
                        rule_text(*needs.network)));
    }
    if (needs.raw != nullptr && !allowed.raw) {
        return fail(
            fmt::format("split rule '{}': such sockets need CAP_NET_RAW, which sessions of this "
                        "acceptor do not have; its administrator can give it, with 'gpr acceptor "
                        "--allow-raw-network'",
                        rule_text(*needs.raw)));
    }
    if (allowed.is_of_host()) return {};
    const auto loose = std::ranges::find_if_not(calls, keeps_to_network);
    if (loose != calls.end()) {
        return fail(
            fmt::format("split rule '{}': this acceptor gives sessions a network of their own, "
                        "with sock:inet, sock:inet6, sock:netlink and sock:unix; its administrator "
                        "can give others, with 'gpr acceptor --allow-host-network'",
                        rule_text(*loose)));
    }
    return {};
}

}  // namespace gpr
