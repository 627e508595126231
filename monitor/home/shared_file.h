// An object of shared memory, as home knows it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/fd.h"
#include "mm/address_space.h"
#include "monitor/home/outsiders.h"
#include "monitor/home/shared_identity.h"

namespace gpr {

struct SharedFile {
    ObjectId object = 0;
    FileNames names;
    SharedIdentity identity;
    Fd path;                // O_PATH; none for memory without a name
    bool written = false;   // some mapping may write
    bool is_named = false;  // by a file system or a descriptor: there may be private mappings of it
    // Of processes outside the session:
    Outsiders::Watched watched;
    OutsideUse outside;
    bool looked = false;       // for them, since it is mapped
    bool given = false;        // a descriptor of it has been sent to one of them
    bool kernel_uses = false;  // a ring of io_uring or AIO, a device: no call tells when
    // Its threads use it at home, where others see at once what they do.
    [[nodiscard]] bool is_contended() const {
        return given || kernel_uses || (outside.any && (written || outside.writes));
    }
};

// Objects of which the acceptor gets nothing for a while.
struct HeldUp {
    std::vector<ObjectId> objects;
};

// What a call may do to shared memory behind its mappings' back.
struct SharedUse {
    std::vector<ObjectId> files;
    bool modifies = false;
};

}  // namespace gpr
