// Descriptors of home that are names of open files of the acceptor: what dup2() makes of one.
//
// Who holds such a file is a question for the kernel that knows fork, exec, close-on-exec, dup and
// SCM_RIGHTS: home's. So a name is a descriptor there, one end of a pair of sockets with which
// nothing can be done, a pair for each file. All its copies name the same file, and once the last
// one is closed the other end hangs up: then the acceptor lets go of the file, of which it held a
// copy.
//
// Calls about a name are made at the acceptor, where the file has the same number in the process's
// table. The acceptor learns of names when a thread calls there about one that it does not know
// (the answer says so), or before a thread comes for it. A process that has a name is under a
// filter that stops calls with this number (name_filter.h), and so are its children. What has been
// told changes through the acceptor alone; what has not, by the kernel here as it likes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "base/fd.h"
#include "monitor/home/part.h"
#include "monitor/node/open_questions.h"
#include "monitor/tracee/notifier.h"
#include "transport/loop.h"
#include "transport/wire.h"

namespace gpr {
struct ForwardedCall;
}  // namespace gpr

namespace gpr::home {

class FdNames {
public:
    explicit FdNames(Home& home);

    // --- program code at home ---
    // Whether the acceptor has to make the call: it is about a file of its, by a name.
    [[nodiscard]] bool concerns(const HomeProcess& process, uint32_t number,
                                const uint64_t* args) const;
    [[nodiscard]] bool is_name(const HomeProcess& process, int number) const;
    // A thread has been stopped at its call by a filter.
    void on_watched_call(HomeThread& thread);
    // The acceptor is to know all names of the process: a thread goes there for one.
    void tell(HomeProcess& process);
    // The process is about to run program code. stub: of a thread of it.
    Task<void> watch_all(HomeProcess& process, StubThread& stub);

    // --- children ---
    // Of a thread at home, which has descriptors of the acceptor.
    void on_birth(const HomeProcess& parent, const HomeProcess& child);
    // The process shares its parent's memory, and calls about a descriptor of the acceptor.
    [[nodiscard]] static bool knows_call_of_guest(uint32_t number);
    Task<void> call_of_guest(pid_t pid, Notification n);
    void on_kept_done(wire::KeptDone::Reader done);
    void on_link_closed();

    // --- calls of threads at the acceptor ---
    // True: it is answered. It makes a name, or is about one that the acceptor does not know, or
    // has an epoll descriptor watch a file there.
    Task<bool> answer(HomeProcess& process, HomeThread& thread, const ForwardedCall& call);
    // It was made. Nobody uses the shadow.
    Task<void> after_call(HomeProcess& process, const ForwardedCall& call);

private:
    using Names = std::map<int, uint64_t>;  // files by number
    struct Held {
        Fd end;  // hangs up
        Watch watch;
        uint64_t inode = 0;  // of the name
    };
    struct KeptAnswer {
        int64_t result = 0;
        uint64_t file = 0;
    };

    Result<Fd> make(uint64_t file);
    [[nodiscard]] std::optional<uint64_t> file_of(pid_t pid, int number) const;
    [[nodiscard]] Names names_of(pid_t pid) const;
    [[nodiscard]] static bool concerns_epoll(const HomeProcess& process, uint32_t number,
                                             const uint64_t* args);
    [[nodiscard]] bool waits_for_names(const HomeProcess& process, uint32_t number,
                                       const uint64_t* args) const;
    [[nodiscard]] Names untold(const HomeProcess& process, const ForwardedCall& call) const;
    Task<bool> watch(HomeProcess& process, StubThread& stub, int number);
    Task<int64_t> put(HomeProcess& process, const ForwardedCall& call);
    Task<int64_t> share_epoll(HomeProcess& process, const ForwardedCall& call);
    void look_for_gone();

    Home& home_;
    std::map<uint64_t, Held> held_;          // by file
    std::map<uint64_t, uint64_t> by_inode_;  // files
    OpenQuestions<KeptAnswer> kept_calls_;
};

}  // namespace gpr::home
