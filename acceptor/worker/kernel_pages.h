// What a new process brings along: all of it goes but the kernel's own pages, and these go to where
// the program knows them. Owns the initiator's vdso.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "acceptor/worker/part.h"
#include "base/address.h"
#include "transport/wire.h"

namespace gpr {
struct EmptyProcess;
class StubThread;
}  // namespace gpr

namespace gpr::worker {

class KernelPages {
public:
    // always_unlike: this kernel's vdso is not used in place of the initiator's, ever.
    KernelPages(Worker& worker, std::vector<std::byte> peer_vdso, bool always_unlike);

    Task<Result<void>> clear_inherited(RemoteProcess& process, const EmptyProcess& empty,
                                       wire::ProcessStart::Reader start);

private:
    Task<Result<void>> show_foreign_vdso(RemoteProcess& process, StubThread& stub, Address end,
                                         uint64_t our_pages);

    Worker& worker_;
    std::vector<std::byte> peer_vdso_;
    bool unlike_vdso_;  // its functions lie elsewhere than in ours
};

}  // namespace gpr::worker
