// Names: descriptors of home that stand for open files of an acceptor. dup2() to a low number makes
// them.
//
// Only home's kernel knows which processes hold such a file, because it handles fork, exec,
// close-on-exec, dup and SCM_RIGHTS. So a name is a real descriptor at home: one end of a socket
// pair that cannot be used for anything; there is one pair for each file. All copies of the
// descriptor name the same file. When the last copy is closed the other end hangs up, and the
// acceptor closes the file, of which it has kept a copy.
//
// Calls about a name are made at the acceptor, where the file has the same number in the process's
// descriptor table. The acceptor learns of a name when a thread there makes a call with a number
// that it does not know (the answer tells it), or before a thread comes for it. A process that has
// a name, and its children, are under a filter that stops calls with this number (name_filter.h).
// Names that the acceptor knows are changed only through it; others change freely in this kernel.
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
    // Whether the acceptor has to make the call, because it uses a name of one of its files.
    [[nodiscard]] bool concerns(const HomeProcess& process, uint32_t number,
                                const uint64_t* args) const;
    [[nodiscard]] bool is_name(const HomeProcess& process, int number) const;
    // A thread has been stopped at its call by a filter.
    void on_watched_call(HomeThread& thread, user_regs_struct regs);
    // For a call that concerns() acceptors: the one whose file it is about.
    [[nodiscard]] NodeId owner_of(const HomeProcess& process, const Notification& n) const;
    // The acceptor whose file this name stands for.
    [[nodiscard]] std::optional<NodeId> owner_of_name(const HomeProcess& process, int number) const;
    // Tells the acceptors all names of the process, because a thread is about to go there for one.
    void tell(HomeProcess& process);
    // The process is about to run program code. stub: of any thread of it.
    Task<void> watch_all(HomeProcess& process, StubThread& stub);

    // For a process without a fragment at the acceptor (kept_calls.h) that calls dup2 or dup3 on
    // this file. Returns the call's result.
    int64_t name_for_vfork_child(const Notification& n, NodeId owner, uint64_t file);

    // --- calls of threads at the acceptor ---
    // True if the call has been answered: it makes a name, uses one that the acceptor does not
    // know, or makes an epoll descriptor of home watch a file there.
    Task<bool> answer(HomeProcess& process, HomeThread& thread, const ForwardedCall& call);
    // To be called after such a call, when the shadow is free.
    Task<void> after_call(HomeProcess& process, const ForwardedCall& call);

private:
    using Names = std::map<int, uint64_t>;  // file by number; see file_at()
    struct Held {
        Fd end;  // our end; hangs up when the last name is closed
        Watch watch;
        uint64_t inode = 0;  // of the name's end
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
    std::map<uint64_t, uint64_t> by_inode_;  // files by inode
};

}  // namespace gpr::home
