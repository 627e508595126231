// Memory that shows files of this host.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "acceptor/worker/part.h"
#include "base/address.h"
#include "base/fd.h"
#include "monitor/node/private_files.h"

namespace gpr {
struct Mapping;
}  // namespace gpr

namespace gpr::worker {

class FileMappings {
public:
    explicit FileMappings(Worker& worker) : worker_(worker) {}

    Task<void> map_file(RemoteProcess& process, Notification n);
    // The program may write this range from now on.
    Task<void> copy_files(std::shared_ptr<Fragment> fragment, Range range);
    // Finds the file of a mapping by its number (Mapping::source). False if it is no longer known.
    bool find_content(Mapping& mapping) const;
    // All files that a child of the process may map again.
    static std::vector<std::shared_ptr<Fd>> sources_of(const RemoteProcess& process);

private:
    uint32_t name_source(const std::shared_ptr<Fd>& file);

    Worker& worker_;
    PrivateFiles files_;
    std::map<uint32_t, std::weak_ptr<Fd>> sources_;  // by number
    uint32_t last_source_ = 0;
};

}  // namespace gpr::worker
