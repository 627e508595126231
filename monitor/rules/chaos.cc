#include "monitor/rules/chaos.h"

#include "syscall/table.h"

namespace gpr {

bool may_leave_at_call(uint32_t number) {
    switch (handlers_of(number).there) {
        case AtAcceptor::restart:         // only the kernel that was interrupted can continue it
        case AtAcceptor::handler_return:  // only the kernel that built the signal frame can use it
        // The thread has ended after the call, so crossing would show nothing.
        case AtAcceptor::exit:
        case AtAcceptor::exit_group: return false;
        default: return true;
    }
}

}  // namespace gpr
