// How the protocol names threads, and which one a packet without a name means.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/debug/debuggee.h"

namespace gpr::debug {

// The threads that a packet is about.
struct ThreadChoice {
    static constexpr pid_t all = -1;
    static constexpr pid_t any = 0;
    pid_t tid = any;

    [[nodiscard]] bool includes(pid_t other) const { return tid <= 0 || tid == other; }
};

class GdbThreads {
public:
    explicit GdbThreads(const Debuggee& debuggee) : debuggee_(debuggee) {}

    // gdb uses a process id ("info proc" needs it) only if names of threads contain it.
    void name_process_too(bool does) { names_process_ = does; }
    [[nodiscard]] bool names_process() const { return names_process_; }

    [[nodiscard]] std::string name_of(pid_t tid) const;
    // A child that the debugger was told of. It may choose it, and sees the memory and registers of
    // its parent there, which are the same.
    void name_child(pid_t child) { child_ = child, means_child_ = false; }
    [[nodiscard]] static std::string name_of_child(pid_t child);
    [[nodiscard]] bool means_child() const { return means_child_; }
    // nullopt: not a name, or that of another process's thread.
    [[nodiscard]] std::optional<ThreadChoice> parse(std::string_view name) const;
    [[nodiscard]] bool exists(pid_t tid) const;

    // The thread that register packets are about; 0 if there are no threads.
    [[nodiscard]] pid_t chosen() const;
    void choose(pid_t tid) { chosen_ = tid; }

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
    const Debuggee& debuggee_;
    bool names_process_ = false;
    pid_t chosen_ = 0;
    ThreadChoice continued_;
    pid_t child_ = 0;
    bool means_child_ = false;  // Hg has chosen it
    std::vector<pid_t> unlisted_;
};

}  // namespace gpr::debug
