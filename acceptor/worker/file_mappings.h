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
    // Of what the program may write from now on.
    Task<void> copy_files(std::shared_ptr<Fragment> fragment, Range range);
    // Of memory that shows a file of ours, by its name. False: it is not known any more.
    bool find_content(Mapping& mapping) const;
    // All that a child of the process may show again.
    static std::vector<std::shared_ptr<Fd>> sources_of(const RemoteProcess& process);

private:
    static Task<Result<void>> copy_of_file(Fragment& fragment, Mapping& mapping);
    uint32_t name_source(const std::shared_ptr<Fd>& file);

    Worker& worker_;
    PrivateFiles files_;
    std::map<uint32_t, std::weak_ptr<Fd>> sources_;  // by their name
    uint32_t last_source_ = 0;
};

}  // namespace gpr::worker
