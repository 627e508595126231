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
#include <sys/user.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "base/fd.h"
#include "mm/page_protocol.h"
#include "monitor/home/part.h"
#include "monitor/tracee/notifier.h"
#include "transport/loop.h"
#include "transport/wire.h"

namespace gpr {
struct ForwardedCall;
}  // namespace gpr

namespace gpr::home {

struct RemoteNode;

class FdNames {
public:
    explicit FdNames(Home& home) : home_(home) {}

    // --- program code at home ---
    // Whether the acceptor has to make the call: it is about a file of its, by a name.
    [[nodiscard]] bool concerns(const HomeProcess& process, uint32_t number,
                                const uint64_t* args) const;
    [[nodiscard]] bool is_name(const HomeProcess& process, int number) const;
    // A thread has been stopped at its call by a filter.
    void on_watched_call(HomeThread& thread, user_regs_struct regs);
    // Of a call that concerns acceptors: whose file it is about.
    [[nodiscard]] NodeId owner_of(const HomeProcess& process, const Notification& n) const;
    // Whose file has that name.
    [[nodiscard]] std::optional<NodeId> owner_of_name(const HomeProcess& process, int number) const;
    // The acceptors are to know all names of the process: a thread goes there for one.
    void tell(HomeProcess& process);
    // The process is about to run program code. stub: of a thread of it.
    Task<void> watch_all(HomeProcess& process, StubThread& stub);

    // For a process without a fragment at the acceptor (kept_calls.h), which calls dup2 or dup3 on
    // this file. Gives the call's result.
    int64_t name_for_guest(const Notification& n, NodeId owner, uint64_t file);

    // --- calls of threads at the acceptor ---
    // True: it is answered. It makes a name, or is about one that the acceptor does not know, or
    // has an epoll descriptor watch a file there.
    Task<bool> answer(HomeProcess& process, HomeThread& thread, const ForwardedCall& call);
    // It was made. Nobody uses the shadow.
    Task<void> after_call(HomeProcess& process, const ForwardedCall& call);

private:
    using Names = std::map<int, uint64_t>;  // files by number; see file_at()
    struct Held {
        Fd end;  // hangs up
        Watch watch;
        uint64_t inode = 0;  // of the name
    };

    static Names names_at(NodeId node, const Names& names);
    void tell(HomeProcess& process, RemoteNode& node, const Names& names);
    Result<Fd> make(uint64_t file);
    [[nodiscard]] std::optional<uint64_t> file_of(pid_t pid, int number) const;
    [[nodiscard]] Names names_of(pid_t pid) const;
    [[nodiscard]] static bool concerns_epoll(const HomeProcess& process, uint32_t number,
                                             const uint64_t* args);
    [[nodiscard]] bool waits_for_names(const HomeProcess& process, uint32_t number,
                                       const uint64_t* args) const;
    [[nodiscard]] Names untold(const HomeProcess& process, const ForwardedCall& call,
                               NodeId caller) const;
    Task<bool> watch(HomeProcess& process, StubThread& stub, int number);
    Task<int64_t> put(HomeProcess& process, const ForwardedCall& call, NodeId owner);
    Task<int64_t> share_epoll(HomeProcess& process, const ForwardedCall& call, NodeId owner);
    void look_for_gone();

    Home& home_;
    std::map<uint64_t, Held> held_;          // by file
    std::map<uint64_t, uint64_t> by_inode_;  // files
};

}  // namespace gpr::home
