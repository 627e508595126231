// The end of a session whose program continues: all threads and pages of its processes come home,
// and everything of gpr is removed from them except the seccomp filter, if they have one.
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

    // Detaches the whole session and ends it. An error says what prevents it; then the program runs
    // on as before.
    Task<Result<void>> detach();
    [[nodiscard]] bool is_under_way() const { return is_under_way_; }
    // The processes that continue without gpr.
    [[nodiscard]] const std::vector<pid_t>& left() const { return left_; }

    // A thread has arrived from an acceptor, in its stub.
    void arrived(HomeThread& thread, const ThreadContext& context);
    // A shadow has stopped in the call that it makes for its thread: ends the call.
    void end_call(HomeThread& thread);

private:
    Task<void> split_children();
    Task<Result<void>> detach_process(HomeProcess& process);
    Result<void> check(const HomeProcess& process) const;
    void recall(HomeProcess& process, bool on);
    Task<Result<void>> bring_threads_home(HomeProcess& process);
    Task<void> bring_thread_home(HomeProcess& process, HomeThread& thread);
    Task<void> go_on_as_before(HomeProcess& process);
    // The part of the main stack that grew into the room below it.
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
