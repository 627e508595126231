// The sessions that an acceptor has and has had: who they are, and what they have counted.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "acceptor/worker/session_tally.h"
#include "base/metrics_text.h"
#include "transport/handshake.h"

namespace gpr {

class SessionBook {
public:
    // A worker has been started for a connection; it counts in `tally`, if there is one.
    void came(pid_t worker, std::string peer, std::optional<SharedTally> tally);
    // The worker's peer has proven a token; the session gets these devices.
    void is_session(pid_t worker, const Hello& hello, const std::vector<Device>& devices);
    // The worker has ended. Its counts are kept in the sums.
    void left(pid_t worker);
    void note_refused() { refused_++; }

    [[nodiscard]] std::vector<SessionDescription> sessions() const;
    struct Host {
        unsigned most_sessions = 0;
        std::vector<Device> devices;  // those known
    };
    [[nodiscard]] std::string metrics(const Host& host) const;

private:
    struct Entry {
        SessionDescription about;
        std::optional<SharedTally> tally;
        bool is_session = false;
    };
    static void tell_calls(MetricsText& text, const CallCounts& calls);

    std::map<pid_t, Entry> entries_;
    SessionTally former_;  // of sessions that have ended
    uint64_t begun_ = 0, refused_ = 0;
};

// A line of the log: how a worker has ended.
struct EndedWorker {
    pid_t pid = 0;
    std::string peer;
    bool is_session = false;
    std::chrono::duration<double> lasted{};
    int status = 0;  // from wait(2)
};
void log_end(const EndedWorker& worker);

}  // namespace gpr
