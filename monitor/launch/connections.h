// Connects to the acceptors before a session begins: greets each, and learns what it has and lacks.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "mm/page_protocol.h"
#include "monitor/launch/run.h"
#include "transport/handshake.h"

namespace gpr {

// The acceptor as the user names it.
std::string text_of(const AcceptorAddress& acceptor);

// Whether threads on several nodes may wake each other, which BPF is to watch where it can.
bool watches_futexes(const ExecOptions& options);

// Whether the names of files that the program uses while it rests are looked at by BPF where it
// can: not if a rule about files is in force, which may not even see a file opened at home.
bool watches_names(const ExecOptions& options);

// session: id of the session, the same for all of its acceptors. program: pid of its program.
Hello hello_of(const ExecOptions& options, NodeId node, const std::string& session, pid_t program);
// Connects and greets. Without a log line, so that it may run in a thread of its own.
Result<EstablishedAcceptor> greet_acceptor_of(const ExecOptions& options, NodeId node,
                                              const LogOptions& log,
                                              const StartLocalAcceptor& start_local,
                                              const HelloSource& hello);
void tell_of(const EstablishedAcceptor& acceptor);

// The range of an acceptor's descriptor numbers.
struct FdRange {
    unsigned base = 0;  // 0: it has no descriptors
    unsigned last = 0;  // 0: no upper bound
};

inline constexpr unsigned least_fds_of_acceptor = 16;

// Chooses ranges above what programs usually have open, one for each acceptor, in the order of
// nodes.
Result<std::vector<FdRange>> choose_fd_ranges(const ExecOptions& options,
                                              const std::vector<EstablishedAcceptor>& acceptors,
                                              pid_t program);

// The program must not use CPU features that the acceptor lacks. Returns the given GLIBC_TUNABLES
// with those added that hide them, or an error if that is impossible or not wanted.
Result<std::string> meet_lacks(const ExecOptions& options, const std::string& tunables,
                               const std::vector<std::string>& lacking);

}  // namespace gpr
