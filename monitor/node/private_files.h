// Files of which the program has private mappings: where their untouched pages come from.
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
    // For reading, and one for all mappings of the file; none if we may not open it again.
    std::shared_ptr<Fd> of_descriptor(pid_t pid, int fd);
    // The same, of what is mapped there.
    std::shared_ptr<Fd> of_mapping(pid_t pid, Address at);

    // Who has it mapped; none if nobody has.
    [[nodiscard]] std::shared_ptr<Fd> find(uint64_t device, uint64_t inode) const;
    [[nodiscard]] std::vector<std::shared_ptr<Fd>> all() const;
    [[nodiscard]] bool empty() const { return files_.empty(); }

private:
    std::shared_ptr<Fd> keep(Fd opened);

    std::map<std::pair<uint64_t, uint64_t>, std::weak_ptr<Fd>> files_;  // device, inode
};

}  // namespace gpr
