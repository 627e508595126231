// Turns a new image, or an unsplit child, into a process with a fragment on every node.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "monitor/home/part.h"
#include "transport/wire.h"

namespace gpr {
class FrameBuilder;
struct ThreadContext;
}  // namespace gpr

namespace gpr::home {

struct RemoteNode;

class Images {
public:
    explicit Images(Home& home) : home_(home) {}

    Task<void> begin_image(HomeProcess& process, HomeThread& thread);
    Task<Result<void>> prepare(HomeProcess& process, HomeThread& thread);
    Task<void> begin(HomeProcess& process, HomeThread& thread, const ThreadContext& context);

    // For a process that acceptors are being told of: waits until all have answered. Why one of
    // them cannot have it, or an empty string.
    Task<std::string> started(pid_t pid);
    [[nodiscard]] bool is_starting(pid_t pid) const;
    static void on_started(RemoteNode& node, wire::ProcessStarted::Reader answer);

private:
    static void begin_anew(HomeThread& thread, const ThreadContext& context);
    std::vector<pid_t> end_old_image(HomeProcess& process, HomeThread& thread);
    Task<void> begin_at_rest(HomeProcess& process);
    Task<bool> leave_exec(HomeThread& thread);
    Task<Result<void>> read_layout(HomeProcess& process, HomeThread& thread);
    Task<Result<void>> start_remotely(HomeProcess& process);
    void tell_start(HomeProcess& process, RemoteNode& node, FrameBuilder& start);

    Home& home_;
};

}  // namespace gpr::home
