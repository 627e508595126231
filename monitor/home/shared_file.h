// An object of shared memory as home knows it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/fd.h"
#include "mm/address_space.h"
#include "monitor/home/external_sharers.h"
#include "monitor/home/shared_identity.h"

namespace gpr {

struct SharedFile {
    ObjectId object = 0;
    FileNames names;
    SharedIdentity identity;
    Fd path;                // O_PATH; closed for memory without a name
    bool written = false;   // some mapping may be written
    bool is_named = false;  // has a file or descriptor, so private mappings of it are possible
    // About external sharers:
    ExternalSharers::Watched watched;
    OutsideUse outside;
    bool looked = false;  // whether they have been searched for since it was mapped
    bool given = false;   // a descriptor of it has been sent to an external sharer
    // A device or ring (io_uring, AIO), written without a call that we see; or huge pages.
    bool kernel_uses = false;
    // Whether the program must use it at home, where others see its writes at once.
    [[nodiscard]] bool is_contended() const {
        return given || kernel_uses || (outside.any && (written || outside.writes));
    }
};

// Objects of which acceptors get no pages for a while.
struct HeldUp {
    std::vector<ObjectId> objects;
};

// What a call may do to shared memory other than through a mapping.
struct SharedUse {
    std::vector<ObjectId> files;
    bool modifies = false;
};

}  // namespace gpr
