#include "acceptor/network_allowance.h"

#include "syscall/call_choice.h"

namespace gpr {

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
    return {};
}

}  // namespace gpr
