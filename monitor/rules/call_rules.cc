#include "monitor/rules/call_rules.h"

#include <sys/syscall.h>

#include "base/result.h"
#include "monitor/rules/exec_options.h"
#include "syscall/call_choice.h"

namespace gpr {
namespace {

template <class Visit>
void for_each_call(const std::vector<SplitRule>& rules, unsigned node, Visit visit) {
    for (size_t i = 0; i < rules.size(); i++) {
        const SplitRule& rule = rules[i];
        if (node != 0 && rule.node_id != node) continue;
        if (rule.kind == SplitKind::sock) {
            auto family = family_called(rule.pattern);
            GPR_ASSERT(family.has_value());
            visit(i, RemoteCall{SYS_socket, *family});
            visit(i, RemoteCall{SYS_socketpair, *family});
        } else if (rule.kind == SplitKind::sys) {
            const Row* row = find_row(std::string_view(rule.pattern));
            GPR_ASSERT(row != nullptr);
            visit(i, RemoteCall{row->number});
        }
    }
}

}  // namespace

std::vector<RemoteCall> remote_calls_of(const std::vector<SplitRule>& rules, unsigned node) {
    std::vector<RemoteCall> calls;
    for_each_call(rules, node, [&](size_t, RemoteCall call) { calls.push_back(call); });
    return calls;
}

std::vector<size_t> rules_of_calls(const std::vector<SplitRule>& rules, unsigned node) {
    std::vector<size_t> places;
    for_each_call(rules, node, [&](size_t place, RemoteCall) { places.push_back(place); });
    return places;
}

std::optional<size_t> find_remote_call(std::span<const RemoteCall> calls, uint32_t number,
                                       uint64_t first_argument) {
    for (size_t i = 0; i < calls.size(); i++) {
        if (calls[i].covers(number, first_argument)) return i;
    }
    return std::nullopt;
}

}  // namespace gpr
