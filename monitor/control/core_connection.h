// Sends a core file of a process of the session to a client, which writes it. The process stands
// meanwhile, and goes on then.
//
// On the connection: records of a header, and as many bytes as it says. The last record has no
// bytes, and the file's size as its offset; or it is an error's text.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "base/task.h"
#include "monitor/debug/core_file.h"

namespace gpr {

namespace home {
class DebuggedProcess;
struct Home;
}  // namespace home

struct CoreRecord {
    static constexpr uint64_t is_error = ~0ULL;
    uint64_t offset = 0;  // in the file; is_error: the bytes say what went wrong
    uint64_t length = 0;
};

class CoreConnection : public debug::CoreSink, public std::enable_shared_from_this<CoreConnection> {
public:
    // Stops the process. Nothing is sent before take().
    static Task<Result<std::shared_ptr<CoreConnection>>> begin(home::Home& home, pid_t pid);
    ~CoreConnection() override;

    void take(Fd fd);

    Task<bool> put(uint64_t offset, std::string bytes) override;

private:
    CoreConnection(home::Home& home, std::shared_ptr<home::DebuggedProcess> process)
        : home_(home), process_(std::move(process)) {}
    static Task<void> send(std::shared_ptr<CoreConnection> self);
    Task<bool> send_all(std::string bytes);

    home::Home& home_;
    std::shared_ptr<home::DebuggedProcess> process_;
    Fd fd_;
};

}  // namespace gpr
