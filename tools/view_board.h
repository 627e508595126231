// What `gpr view` has last heard from a session, and who wants to know: between the one thread that
// asks the session and those that answer viewers. However many they are, and however slow, the
// session is asked no oftener.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace gpr {

class ViewBoard {
public:
    // process: whose memory is meant where a viewer names none.
    explicit ViewBoard(pid_t process) : process_(process) {}

    // For viewers, as JSON. pid: the process whose memory is wanted; 0: the usual one. known: the
    // number of the picture of memory that the viewer has, which is not told again.
    std::string answer(pid_t pid, uint64_t known);

    // For who asks the session. All texts are JSON.
    [[nodiscard]] bool is_watched() const;  // somebody looked in the last few seconds
    // A process whose memory is wanted; each in its turn.
    std::optional<pid_t> next_process();
    void put_now(std::string now);
    void put_memory(pid_t pid, std::string memory);
    // Why the session does not answer; it may later.
    void put_error(std::string error);
    void put_end();

private:
    using Clock = std::chrono::steady_clock;
    struct Memory {
        Clock::time_point wanted{};  // by any viewer
        uint64_t number = 0;         // counts the pictures; 0: there is none
        std::string text = "null";
    };

    const pid_t process_;
    mutable std::mutex mutex_;  // of all that follows
    Clock::time_point looked_at_{};
    std::string now_ = "null", error_ = "null";
    bool has_ended_ = false;
    uint64_t last_number_ = 0;
    std::map<pid_t, Memory> memories_;
    pid_t last_process_ = 0;
};

}  // namespace gpr
