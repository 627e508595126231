// The acceptors of a session before it begins: each is greeted, and asked what it has and lacks.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "mm/page_protocol.h"
#include "monitor/launch/run.h"
#include "transport/handshake.h"

namespace gpr {

// As the user called it.
std::string text_of(const AcceptorAddress& acceptor);

// session: its name, the same for all of its acceptors. program: the process that it is about.
Result<EstablishedAcceptor> connect_acceptor(const ExecOptions& options, NodeId node,
                                             const std::string& session, const LogOptions& log,
                                             const StartLocalAcceptor& start_local, pid_t program);

// The numbers of an acceptor's descriptors.
struct FdRange {
    unsigned base = 0;  // 0: it has none
    unsigned last = 0;  // 0: there is no bound
};

inline constexpr unsigned least_fds_of_acceptor = 16;

// Above what programs mostly may have, with room for each acceptor's own, in the order of nodes.
Result<std::vector<FdRange>> choose_fd_ranges(const ExecOptions& options,
                                              const std::vector<EstablishedAcceptor>& acceptors,
                                              pid_t program);

// What an acceptor's CPU lacks the program must not use. Gives the GLIBC_TUNABLES that see to it,
// beginning with those that there are.
Result<std::string> meet_lacks(const ExecOptions& options, const std::string& tunables,
                               const std::vector<std::string>& lacking);

}  // namespace gpr
