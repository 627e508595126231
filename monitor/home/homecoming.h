// All threads and memory of a process come home, whatever the rules say: because it is detached,
// dies with a core file, or stops for its debugger.
#pragma once

#include <vector>

#include "base/address.h"
#include "base/result.h"
#include "monitor/home/part.h"

namespace gpr {
struct Mapping;
class StubThread;
struct ThreadContext;
}  // namespace gpr

namespace gpr::home {

class Homecoming {
public:
    explicit Homecoming(Home& home) : home_(home) {}

    // Waits until every thread of the process, which must be `recalled`, is in its stub at home and
    // has `goes_on_with`; in an unsplit child, until it is stopped. An error names a thread that
    // does not come.
    Task<Result<void>> bring_threads(HomeProcess& process);
    // Undoes bring_threads(): the threads continue.
    Task<void> go_on_as_before(HomeProcess& process);
    // The same in steps: first the process is no longer `recalled`, then each thread that has come
    // home continues.
    void end_recall(HomeProcess& process);
    Task<void> let_go(HomeThread& thread);

    // A thread of a recalled process has arrived from an acceptor, in its stub.
    void arrived(HomeThread& thread, const ThreadContext& context);
    // A shadow has stopped in the call that it makes for its thread: ends the call.
    void end_call(HomeThread& thread);

    // For a process of which all threads and pages are here:
    // Maps its files again in place of the copies that splitting it has made.
    Task<Result<void>> show_files_again(HomeProcess& process);
    // The part of the main stack that grew into the room below it.
    struct GrownStack {
        Address begin{};
        std::vector<std::byte> content;
    };
    // Unmaps that room, and returns the part that was in use.
    Task<GrownStack> take_stack_room(HomeProcess& process);

private:
    void recall(HomeProcess& process, bool on);
    Task<void> bring_thread(HomeProcess& process, HomeThread& thread);
    Task<Result<void>> show_file_again(HomeProcess& process, StubThread& stub, const Mapping& m);

    Home& home_;
};

}  // namespace gpr::home
