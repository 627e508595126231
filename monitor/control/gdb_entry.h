// Where gdb comes to debug a program from its first instruction on. One comes; later ones find
// nobody.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/task.h"
#include "monitor/control/debug_connection.h"
#include "transport/endpoint.h"
#include "transport/loop.h"

namespace gpr {

class GdbEntry {
public:
    // Listens at that TCP address; if it is empty, gdb has the other end of the socket.
    static Result<GdbEntry> create(const std::string& address, int socket);

    // Where gdb is to connect; empty if it has the other end of a socket.
    [[nodiscard]] std::string address() const;
    // `this` must not be moved any more.
    void begin(home::Home& home, pid_t program);

private:
    void watch(Loop& loop, home::Home& home, pid_t program);
    void take(home::Home& home, pid_t program, Fd connection);
    static Task<void> serve(GdbEntry* self, home::Home* home, pid_t program, Fd connection);

    std::vector<Listener> listeners_;
    Fd connection_;
    std::vector<Watch> watches_;
    std::shared_ptr<DebugConnection> debugger_;
};

}  // namespace gpr
