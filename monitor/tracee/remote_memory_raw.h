// A program's memory through /proc/PID/mem, which never blocks on a missing page (process_vm_*
// would).
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/fd.h"
#include "base/result.h"

namespace gpr {

class RemoteMemory {
public:
    static Result<RemoteMemory> open(pid_t pid);

    // Return the number of bytes transferred, which is short at the first page that is missing or,
    // for writes, write-protected by userfaultfd. Protections (PROT_*) do not matter.
    size_t read(Address from, void* to, size_t size) const;
    size_t write(Address to, const void* from, size_t size) const;

    [[nodiscard]] bool read_exact(Address from, void* to, size_t size) const {
        return read(from, to, size) == size;
    }
    [[nodiscard]] bool write_exact(Address to, const void* from, size_t size) const {
        return write(to, from, size) == size;
    }
    [[nodiscard]] int fd() const { return fd_.get(); }

private:
    explicit RemoteMemory(Fd fd) : fd_(std::move(fd)) {}
    Fd fd_;
};

// One line of /proc/pid/maps.
struct MapsEntry {
    Range range;
    int prot = 0;  // PROT_*
    bool shared = false;
    uint64_t offset = 0;
    uint64_t inode = 0;
    uint64_t device = 0;
    std::string name;
};

Result<std::vector<MapsEntry>> read_maps(pid_t pid);

// As in /proc/pid/comm; empty if the process is gone.
std::string command_name(pid_t pid);

// The address of a `syscall` instruction in the process. The vdso always has one, for clocks that
// it cannot read itself.
Result<Address> find_syscall_instruction(const std::vector<MapsEntry>& maps,
                                         const RemoteMemory& memory);

}  // namespace gpr
