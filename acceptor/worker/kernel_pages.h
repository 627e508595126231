// Mappings that a new process inherits from the worker: all are removed except the kernel's own
// pages (vdso), which are moved to where the program knows them. Has home's vdso image.
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
    // always_unlike: never use this kernel's vdso in place of home's.
    KernelPages(Worker& worker, std::vector<std::byte> peer_vdso, bool always_unlike);

    Task<Result<void>> clear_inherited(RemoteProcess& process, const EmptyProcess& empty,
                                       wire::ProcessStart::Reader start);

private:
    Task<Result<void>> show_foreign_vdso(RemoteProcess& process, StubThread& stub, Address end,
                                         uint64_t our_pages);

    Worker& worker_;
    std::vector<std::byte> peer_vdso_;
    bool unlike_vdso_;  // its functions are at other offsets than home's
};

}  // namespace gpr::worker
