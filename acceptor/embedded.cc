#include "acceptor/embedded.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>

#include "acceptor/device_choice.h"
#include "acceptor/exports.h"
#include "acceptor/inventory.h"
#include "acceptor/worker_process.h"
#include "base/log.h"
#include "base/own_limits.h"

namespace gpr {
namespace {

constexpr const char* peer_name = "local";

// The program's files and pipes must not stay open because of us. Descriptor 3 is the connection.
void keep_only(int connection) {
    const int null = open("/dev/null", O_RDWR);
    for (int standard = 0; standard < 3; ++standard) dup2(null, standard);
    if (connection != 3) dup3(connection, 3, O_CLOEXEC);
    close_range(4, ~0U, 0);
}

// There is nobody to share devices with, as far as it knows.
Result<Welcome> admit_alone(const Hello& hello) {
    Welcome welcome;
    if (hello.devices.empty()) return welcome;
    welcome.inventory = take_inventory({"", default_exports()});
    GPR_TRY(welcome.devices, choose_devices(welcome.inventory.devices, hello.devices));
    return welcome;
}

int run_embedded(int connection, const Token& token, const WorkerMain& worker,
                 const EmbeddedAcceptorOptions& options) {
    keep_only(connection);
    static_cast<void>(start_logging(options.log_file, options.log_level));
    ServeOptions serve;
    serve.load_tokens = [&token] { return Result<TokenFile>(TokenFile({token})); };
    serve.peer = peer_name;
    serve.allow_plain = true;
    serve.features = options.features;
    serve.exports = {"/*"};  // who runs it has these files already
    serve.network = {true, true};
    serve.admit = admit_alone;
    return serve_connection(Fd(3), serve, worker);
}

}  // namespace

Result<EmbeddedAcceptor> start_embedded_acceptor(const WorkerMain& worker,
                                                 const EmbeddedAcceptorOptions& options) {
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
        _exit(run_embedded(theirs.get(), embedded.token, worker, options));
    }
    embedded.pid = static_cast<pid_t>(pid);
    return embedded;
}

}  // namespace gpr
