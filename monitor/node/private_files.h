// Files that the program has mapped privately, from which untouched pages are read.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/address.h"
#include "base/fd.h"

namespace gpr {

class PrivateFiles {
public:
    // Open for reading and shared by all mappings of the file; null if we may not open it.
    std::shared_ptr<Fd> of_descriptor(pid_t pid, int fd);
    // The same, for the file that is mapped there.
    std::shared_ptr<Fd> of_mapping(pid_t pid, Address at);

    // The open file, if it is mapped; else null.
    [[nodiscard]] std::shared_ptr<Fd> find(uint64_t device, uint64_t inode) const;
    [[nodiscard]] std::vector<std::shared_ptr<Fd>> all() const;
    [[nodiscard]] bool empty() const { return files_.empty(); }

private:
    std::shared_ptr<Fd> keep(Fd opened);

    std::map<std::pair<uint64_t, uint64_t>, std::weak_ptr<Fd>> files_;  // device, inode
};

}  // namespace gpr
