// Identifies an object of shared memory. The device and inode that /proc/PID/maps shows do not
// suffice: anonymous memory, memfds and System V segments all belong to one file system; a
// segment's inode number is its id, and every IPC namespace counts ids from 0; and overlayfs shows
// one device for the files of all its layers.
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
    uint64_t device = 0, inode = 0;  // from stat(2); 0: unknown
    std::string handle;              // identifies the inode for ever; empty: it has none

    [[nodiscard]] bool is(const SharedIdentity& other) const;
};

// path: the file, if it could be opened. ipc_namespace: for a segment, the one in which it was
// attached.
SharedIdentity identity_of(const MapsEntry& mapped, const Fd& path, ino_t ipc_namespace);
// Whether the process may write this shared mapping, as far as its line shows: what has no file is
// often mapped first, and made writable later.
bool may_be_written(const MapsEntry& shared);
// 0 if the thread has ended or this kernel has no such namespaces.
ino_t ipc_namespace_of(pid_t tid);

}  // namespace gpr
