#include "syscall/name_filter.h"

#include <linux/seccomp.h>
#include <sys/syscall.h>

#include <map>

#include "syscall/filter_program.h"
#include "syscall/table.h"

namespace gpr {
namespace {

using Label = FilterProgram::Label;

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
    Label by_program = program.by_caller(stub_word, allow, stop);
    std::map<uint32_t, Label> tests{{0, allow}};  // by the set of fd arguments
    std::map<uint32_t, Label> actions;            // by number
    for (const Row* row : all_rows()) {
        auto [known, is_new] = tests.try_emplace(row->fd_arguments(), allow);
        for (size_t i = 6; is_new && i-- > 0;) {
            if ((row->fd_arguments() & (1u << i)) == 0) continue;
            known->second = program.by_argument(i, UINT32_MAX, number, by_program, known->second);
        }
        bool anyhow = row->number == SYS_close_range || has_fds_in_memory(row->number);
        Label action = anyhow ? by_program : known->second;
        if (row->place == Place::refused) action = allow;
        actions[row->number] = action;
    }
    program.by_architecture(program.by_number(actions, allow), allow);
    return program.finish();
}

}  // namespace gpr
