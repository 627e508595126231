// Memory that shows files of this host.
#pragma once

#include "acceptor/worker/part.h"
#include "base/address.h"

namespace gpr {
struct Mapping;
}  // namespace gpr

namespace gpr::worker {

class FileMappings {
public:
    explicit FileMappings(Worker& worker) : worker_(worker) {}

    Task<void> map_file(RemoteProcess& process, Notification n);
    // Of what the program may write from now on.
    Task<void> copy_files(RemoteProcess& process, Range range);
    static Result<void> fill_from_file(Fragment& fragment, const Mapping& mapping);

private:
    static Task<Result<void>> copy_of_file(Fragment& fragment, Mapping& mapping);

    Worker& worker_;
};

}  // namespace gpr::worker
