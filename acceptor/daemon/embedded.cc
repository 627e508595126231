#include "acceptor/daemon/embedded.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>

#include "acceptor/box/privileges.h"
#include "acceptor/box/worker_process.h"
#include "base/own_limits.h"

namespace gpr {
namespace {

constexpr const char* peer_name = "local";

// Keeps none of the program's files and pipes open. Descriptor 3 will be the connection.
void keep_only(int connection) {
    const int null = open("/dev/null", O_RDWR);
    for (int standard = 0; standard < 3; ++standard) dup2(null, standard);
    if (connection != 3) dup3(connection, 3, O_CLOEXEC);
    close_range(4, ~0U, 0);
}

OrderedSession only_session(const Token& token, const EmbeddedAcceptorOptions& options) {
    OrderedSession session{Fd(3), Fd(), {}, Fd()};
    SessionOrder& order = session.order;
    order.peer = peer_name;
    order.plain = true;
    order.token = token.line();
    order.features = options.features;
    order.options.log_file = options.log_file;
    order.options.log_level = options.log_level;
    order.options.exports = {"/*"};  // the user has these files already
    order.options.network.sockets = order.options.network.raw = true;  // on the user's own host
    order.options.cache_folder = {};                                   // the files are on this host
    order.options.user_ids = {};  // both sides are the same user
    return session;
}

}  // namespace

Result<EmbeddedAcceptor> start_embedded_acceptor(const EmbeddedAcceptorOptions& options,
                                                 const SessionStart& start) {
    if (!has_capability(CAP_SYS_ADMIN)) {
        return fail(
            "a local acceptor is started by root, as any: it makes namespaces for the session; run "
            "this with sudo, or name an acceptor that runs");
    }
    GPR_CHECK(lift_own_limits(least_files_of_acceptor));
    EmbeddedAcceptor embedded;
    GPR_TRY(embedded.token, new_token());
    std::array<int, 2> sockets{};
    GPR_CHECK(from_libc(
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sockets.data()),
        "connect to the local acceptor"));
    embedded.connection = Fd(sockets[0]);
    const Fd theirs(sockets[1]);
    const pid_t parent = getpid();
    GPR_TRY(const long pid, from_libc(fork(), "start the local acceptor"));
    if (pid == 0) {
        become_worker_process(parent);
        keep_only(theirs.get());
        _exit(start(only_session(embedded.token, options)));
    }
    embedded.pid = static_cast<pid_t>(pid);
    return embedded;
}

}  // namespace gpr
