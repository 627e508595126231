// The end of a session whose program goes on: all threads and pages of its processes come home, and
// nothing of us stays in them but the filter, if they have one.
#pragma once

#include <functional>
#include <vector>

#include "base/result.h"
#include "monitor/home/part.h"
#include "monitor/tracee/infection.h"

namespace gpr {
struct Mapping;
struct ThreadContext;
}  // namespace gpr

namespace gpr::home {

class Detachment {
public:
    explicit Detachment(Home& home) : home_(home) {}

    // Of the whole session, which is over then. An error says what is in the way; the program runs
    // on as before.
    Task<Result<void>> detach();
    [[nodiscard]] bool is_under_way() const { return is_under_way_; }
    // Processes that go on without us.
    [[nodiscard]] const std::vector<pid_t>& left() const { return left_; }

    // A thread that comes from an acceptor, in its stub.
    void arrived(HomeThread& thread, const ThreadContext& context);
    // One that has stopped in the call that it makes for its other half, which ends it.
    void end_call(HomeThread& thread);

private:
    Task<void> split_children();
    Task<Result<void>> detach_process(HomeProcess& process);
    Result<void> check(const HomeProcess& process) const;
    void recall(HomeProcess& process, bool on);
    Task<Result<void>> bring_threads_home(HomeProcess& process);
    Task<void> bring_thread_home(HomeProcess& process, HomeThread& thread);
    Task<void> go_on_as_before(HomeProcess& process);
    // What the main stack has grown by in the room that it was given.
    struct GrownStack {
        Address begin{};
        std::vector<std::byte> content;
    };
    Task<Result<void>> restore_mappings(HomeProcess& process);
    Task<void> take_stack_room(HomeProcess& process, StubThread& stub);
    Task<Result<void>> show_file_again(HomeProcess& process, StubThread& stub, const Mapping& m);
    Task<Result<void>> end_helpers(HomeProcess& process);
    void give_up(HomeProcess& process, const Error& why);
    Task<Result<void>> leave(HomeProcess& process);
    void forget(HomeProcess& process);

    Home& home_;
    bool is_under_way_ = false;
    std::vector<pid_t> left_;
    GrownStack grown_;
};

}  // namespace gpr::home
