#include "syscall/name_filter.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include <cstddef>
#include <map>
#include <span>

#include "syscall/filter_program.h"
#include "syscall/table.h"

namespace gpr {
namespace {

using Label = FilterProgram::Label;

struct Interval {
    uint32_t first;
    Label action;
};

Label tree(FilterProgram& program, std::span<const Interval> intervals) {
    if (intervals.size() == 1) return intervals.front().action;
    size_t middle = intervals.size() / 2;
    Label high = tree(program, intervals.subspan(middle));
    Label low = tree(program, intervals.first(middle));
    return program.branch(BPF_JGE, intervals[middle].first, high, low);
}

}  // namespace

bool has_fds_in_memory(uint32_t call) {
    switch (call) {
        case SYS_poll:
        case SYS_ppoll:
        case SYS_select:
        case SYS_pselect6: return true;
        default: return false;
    }
}

std::vector<sock_filter> name_filter(uint32_t number, uint32_t stub_word) {
    FilterProgram program;
    Label allow = program.ret(SECCOMP_RET_ALLOW);
    Label stop = program.ret(SECCOMP_RET_TRACE | name_filter_mark);
    Label by_program = program.load(offsetof(seccomp_data, instruction_pointer) + 4,
                                    program.branch(BPF_JEQ, stub_word, allow, stop));
    std::map<uint32_t, Label> tests{{0, allow}};  // by the set of fd arguments
    std::vector<Interval> intervals{{0, allow}};
    auto add = [&](uint32_t first, Label action) {
        if (intervals.back().first == first) intervals.pop_back();
        if (!intervals.empty() && intervals.back().action == action) return;
        intervals.push_back({first, action});
    };
    for (const Row* row : all_rows()) {
        auto [known, is_new] = tests.try_emplace(row->fd_arguments(), allow);
        for (size_t i = 6; is_new && i-- > 0;) {
            if ((row->fd_arguments() & (1u << i)) == 0) continue;
            known->second =
                program.load(static_cast<uint32_t>(offsetof(seccomp_data, args) + i * 8),
                             program.branch(BPF_JEQ, number, by_program, known->second));
        }
        bool anyhow = row->number == SYS_close_range || has_fds_in_memory(row->number);
        Label action = anyhow ? by_program : known->second;
        if (row->place == Place::refused) action = allow;
        add(row->number, action);
        add(row->number + 1u, allow);
    }
    Label by_number = program.load(offsetof(seccomp_data, nr), tree(program, intervals));
    program.load(offsetof(seccomp_data, arch),
                 program.branch(BPF_JEQ, AUDIT_ARCH_X86_64, by_number, allow));
    return program.finish();
}

}  // namespace gpr
