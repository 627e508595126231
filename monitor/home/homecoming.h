// All threads and memory of a process come home, whatever the rules say: because it is detached,
// returns to rest, dies with a core file, or stops for its debugger.
#pragma once

#include <chrono>
#include <vector>

#include "base/address.h"
#include "base/result.h"
#include "monitor/home/part.h"
#include "monitor/tracee/infection.h"

namespace gpr {
struct Mapping;
class StubThread;
struct ThreadContext;
}  // namespace gpr

namespace gpr::home {

class Homecoming {
public:
    explicit Homecoming(Home& home) : home_(home) {}

    // For threads, each of which may have to wait for pages.
    static constexpr std::chrono::milliseconds longest_wait{10'000};

    // Waits until every thread of the process, whose `comes_home` must be true, is in its stub at
    // home and has `goes_on_with`; in an unsplit child, until it is stopped. An error names a
    // thread that does not come.
    Task<Result<void>> bring_threads(HomeProcess& process,
                                     std::chrono::milliseconds patience = longest_wait);
    // Undoes bring_threads(): the threads continue.
    Task<void> go_on_as_before(HomeProcess& process);
    // The same in steps: first its `comes_home` becomes false, then each thread that has come home
    // continues.
    void end(HomeProcess& process);
    Task<void> let_go(HomeThread& thread);

    // A thread of a process that comes home has arrived from an acceptor, in its stub.
    void arrived(HomeThread& thread, const ThreadContext& context);
    // A shadow has stopped in the call that it makes for its thread: ends the call.
    void end_call(HomeThread& thread);

    // For a process of which all threads and pages are here:
    // Maps its files again in place of the copies that splitting it has made.
    Task<Result<void>> show_files_again(HomeProcess& process);

    // To become an ordinary process again, in this order:
    // An error if it cannot, such as for something that home does not have.
    [[nodiscard]] Result<void> can_leave(const HomeProcess& process) const;
    // The part of the main stack that grew into the room below it.
    struct GrownStack {
        Address begin{};
        std::vector<std::byte> content;
    };
    // All threads are here: brings its memory, maps it as it was before it was split, and ends the
    // process at all acceptors.
    Task<Result<GrownStack>> bring_memory(HomeProcess& process);
    // What is still to be undone in it.
    struct Remains {
        Infection::Taken taken;
        std::vector<Infection::LockedRange> locked;
        LockOfNew lock_of_new = LockOfNew::none;
        std::vector<pid_t> helpers;
        GrownStack grown;
        std::vector<std::pair<Address, int>> growing;  // the lowest page of what grows, protection
    };
    // All threads leave the stub, and are stopped; the helpers end.
    Task<Result<Remains>> take_out(HomeProcess& process, GrownStack grown);
    // From now on nobody knows the fragment, and the threads have no stub any more.
    void forget_fragment(HomeProcess& process);
    static Result<void> cure(Infection& infection, Remains& remains);

private:
    Task<GrownStack> take_stack_room(HomeProcess& process);
    Task<Result<void>> end_helpers(HomeProcess& process);
    Task<Result<void>> take_threads_out(HomeProcess& process, Infection::Taken& taken);
    void tell_acceptors(HomeProcess& process, bool on);
    Task<void> bring_thread(HomeProcess& process, HomeThread& thread);
    Task<Result<void>> show_file_again(HomeProcess& process, StubThread& stub, const Mapping& m);

    Home& home_;
};

}  // namespace gpr::home
