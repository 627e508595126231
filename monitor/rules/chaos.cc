#include "monitor/rules/chaos.h"

#include "syscall/table.h"

namespace gpr {

bool may_leave_at_call(uint32_t number) {
    switch (handlers_of(number).there) {
        case AtAcceptor::restart:         // the kernel that was interrupted knows the rest
        case AtAcceptor::handler_return:  // its frame is the kernel's that built it
        case AtAcceptor::exit:            // nothing can be seen of it, and it would not be there
        case AtAcceptor::exit_group: return false;
        default: return true;
    }
}

}  // namespace gpr
