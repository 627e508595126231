// What tells one object of shared memory from another. The device and the number that
// /proc/PID/maps shows do not: anonymous memory, memfds and System V segments are files of one file
// system there, the number of a segment is its id, and every IPC namespace counts ids from 0. An
// overlay shows one device for files of all its layers.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/fd.h"
#include "monitor/tracee/remote_memory_raw.h"

namespace gpr {

struct SharedIdentity {
    uint64_t mapped_device = 0, mapped_inode = 0;
    bool is_segment = false;
    ino_t ipc_namespace = 0;         // of a segment
    uint64_t device = 0, inode = 0;  // as stat(2) gives them; 0: we may not look
    std::string handle;              // of the inode and no other, ever; empty: it has none

    [[nodiscard]] bool is(const SharedIdentity& other) const;
};

// path: the file, if it could be opened. ipc_namespace: in which it was attached, if it is a
// segment.
SharedIdentity identity_of(const MapsEntry& mapped, const Fd& path, ino_t ipc_namespace);
// 0: it has ended, or this kernel has none.
ino_t ipc_namespace_of(pid_t tid);

}  // namespace gpr
