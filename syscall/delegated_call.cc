#include "syscall/delegated_call.h"

#include <asm/ioctls.h>
#include <fcntl.h>

#include "syscall/table.h"

namespace gpr {

OnDelegated on_delegated(uint32_t number, const uint64_t* args) {
    const OnDelegated use = details_of(number).on_delegated;
    const auto command = static_cast<uint32_t>(args[1]);
    if (use == OnDelegated::ioctl) return command == TCGETS ? use : OnDelegated::gives_back;
    if (use != OnDelegated::fcntl) return use;
    const bool keeps = command == F_GETFD || command == F_SETFD || command == F_GETFL;
    return keeps ? OnDelegated::keeps : OnDelegated::gives_back;
}

bool uses_descriptor(uint32_t number, const uint64_t* args, int descriptor) {
    const Row* row = find_row(number);
    const uint32_t places = row ? row->fd_arguments() : 0;
    for (unsigned i = 0; i < 6; i++) {
        if ((places >> i & 1) && static_cast<int>(args[i]) == descriptor) return true;
    }
    return false;
}

bool needs_back(uint32_t number, const uint64_t* args, int descriptor) {
    switch (on_delegated(number, args)) {
        case OnDelegated::gives_back_all: return true;
        case OnDelegated::reads:
            return !details_of(number).transfer.at_offset &&
                   uses_descriptor(number, args, descriptor);
        case OnDelegated::gives_back:
        case OnDelegated::lists:
        case OnDelegated::seeks: return uses_descriptor(number, args, descriptor);
        default: return false;
    }
}

}  // namespace gpr
