// Makes the fragments of processes here from home's description. Has the stub's code, and assigns
// ids to helpers.
#pragma once

#include <sys/types.h>

#include <vector>

#include "acceptor/worker/part.h"
#include "base/fd.h"
#include "transport/wire.h"

namespace gpr {
class Mailbox;
class StubThread;
struct EmptyProcess;
struct EmptyProcessOptions;
}  // namespace gpr

namespace gpr::worker {

class Starts {
public:
    Starts(Worker& worker, Fd stub_code) : worker_(worker), stub_code_(std::move(stub_code)) {}

    Task<void> start_process(Frame frame);
    pid_t next_helper_id(pid_t of_process);
    // Whether this kernel has guard pages and can report them.
    [[nodiscard]] bool has_guards() const { return has_guards_; }

private:
    Task<Result<void>> build(RemoteProcess& process, wire::ProcessStart::Reader start,
                             std::vector<Frame> layout);
    Result<EmptyProcessOptions> options_for(RemoteProcess& process,
                                            wire::ProcessStart::Reader start,
                                            const Mailbox& mailbox);
    Result<RemoteThread*> adopt(RemoteProcess& process, EmptyProcess& empty,
                                std::unique_ptr<Mailbox> mailbox);
    Task<Result<void>> start_helpers(RemoteProcess& process, StubThread& stub,
                                     wire::ProcessStart::Reader start);
    Task<Result<void>> map_layout(Fragment& fragment, StubThread& stub,
                                  const std::vector<Frame>& layout);
    static Task<void> set_actions(RemoteProcess& process, StubThread& stub,
                                  wire::ProcessStart::Reader start);
    Result<RemoteThread*> adopt_leader(RemoteProcess& process);

    Worker& worker_;
    Fd stub_code_;
    bool has_guards_ = false;
    pid_t next_helper_ = 0;
};

}  // namespace gpr::worker
