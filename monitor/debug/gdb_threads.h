// How the protocol names threads, and which one a packet without a name means.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/debug/gdb_processes.h"

namespace gpr::debug {

// The threads that a packet is about.
struct ThreadChoice {
    static constexpr pid_t all = -1;
    static constexpr pid_t any = 0;
    pid_t tid = any;
    pid_t pid = any;  // of their process

    [[nodiscard]] bool includes(pid_t process, pid_t thread) const {
        return (pid <= 0 || pid == process) && (tid <= 0 || tid == thread);
    }
};

class GdbThreads {
public:
    explicit GdbThreads(const GdbProcesses& processes) : processes_(processes) {}

    // gdb uses a process id ("info proc" needs it) only if names of threads contain it.
    void name_process_too(bool does) { names_process_ = does; }
    [[nodiscard]] bool names_process() const { return names_process_; }

    [[nodiscard]] std::string name_of(pid_t pid, pid_t tid) const;
    // nullopt: not a name, or that of a strange process's thread.
    [[nodiscard]] std::optional<ThreadChoice> parse(std::string_view name) const;
    [[nodiscard]] bool exists(pid_t tid) const;

    // The process that packets are about; null if there is none.
    [[nodiscard]] const GdbProcesses::One* chosen_process() const;
    // The thread that register packets are about; 0 if there are no threads.
    [[nodiscard]] pid_t chosen() const;
    void choose(pid_t pid, pid_t tid) { chosen_pid_ = pid, chosen_ = tid; }

    // H: chooses a thread for register packets (g), or for the older packets that continue (c).
    [[nodiscard]] std::string answer_choice(std::string_view operation);
    // T
    [[nodiscard]] std::string answer_alive(std::string_view name) const;
    // qfThreadInfo and qsThreadInfo: the list, in pieces.
    [[nodiscard]] std::string answer_first_ids();
    [[nodiscard]] std::string answer_next_ids();
    // qThreadExtraInfo
    [[nodiscard]] std::string answer_description(std::string_view name) const;
    // For qXfer:threads.
    [[nodiscard]] std::string list() const;
    // As Hc chose.
    [[nodiscard]] ThreadChoice continued() const { return continued_; }

private:
    const GdbProcesses& processes_;
    bool names_process_ = false;
    pid_t chosen_pid_ = 0, chosen_ = 0;
    ThreadChoice continued_;
    std::vector<std::string> unlisted_;
};

}  // namespace gpr::debug
