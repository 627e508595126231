#include "monitor/control/gdb_entry.h"

#include <fcntl.h>
#include <poll.h>

#include <utility>

#include "base/log.h"
#include "monitor/home/home.h"

namespace gpr {

Result<GdbEntry> GdbEntry::create(const std::string& address, int socket) {
    GdbEntry entry;
    if (address.empty()) {
        entry.connection_ = Fd(fcntl(socket, F_DUPFD_CLOEXEC, 0));
        if (!entry.connection_) return fail(errno, "cannot take over gdb's connection");
        return entry;
    }
    GPR_TRY(const Endpoint endpoint, parse_endpoint(address, true));
    GPR_TRY(entry.listeners_, Listener::listen(endpoint));
    return entry;
}

std::string GdbEntry::address() const {
    return listeners_.empty() ? "" : listeners_.front().endpoint().text();
}

void GdbEntry::begin(home::Home& home, pid_t program) {
    if (connection_) return take(home, program, std::move(connection_));
    watch(home.loop, home, program);
}

void GdbEntry::watch(Loop& loop, home::Home& home, pid_t program) {
    for (const Listener& listener : listeners_) {
        watches_.push_back(
            loop.watch(listener.fd(), POLLIN, [this, &loop, &home, &listener, program](uint32_t) {
                auto accepted = listener.accept();
                if (accepted) {
                    take(home, program, std::move(accepted->fd));
                    // Later: one of them is being called.
                    loop.after(std::chrono::milliseconds(0), [this] {
                        watches_.clear();
                        listeners_.clear();
                    });
                } else {
                    loop.after(std::chrono::milliseconds(0), [this, &loop, &home, program] {
                        watches_.clear();
                        if (!debugger_) watch(loop, home, program);
                    });
                }
            }));
    }
}

void GdbEntry::take(home::Home& home, pid_t program, Fd connection) {
    spawn(serve(this, &home, program, std::move(connection)));
}

Task<void> GdbEntry::serve(GdbEntry* self, home::Home* home, pid_t program, Fd connection) {
    auto begun = co_await DebugConnection::begin(*home, program);
    if (!begun) {  // the program has not begun, and says why
        spdlog::info("gdb gets nothing: {}", begun.error().message());
        co_return;
    }
    self->debugger_ = *begun;
    self->debugger_->take(std::move(connection), [self] { self->debugger_.reset(); });
}

}  // namespace gpr
