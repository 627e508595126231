// What GdbServer is within. It outlives the server while a command waits for the program's memory.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/task.h"
#include "monitor/debug/debuggee.h"
#include "monitor/debug/gdb_files.h"
#include "monitor/debug/gdb_packets.h"
#include "monitor/debug/gdb_resumption.h"
#include "monitor/debug/gdb_threads.h"
#include "monitor/debug/gdb_transfers.h"

namespace gpr::debug {

class GdbConversation : public std::enable_shared_from_this<GdbConversation> {
public:
    GdbConversation(Debuggee& debuggee, std::function<void(std::string)> send,
                    std::function<void()> hang_up);
    GdbConversation(const GdbConversation&) = delete;
    GdbConversation& operator=(const GdbConversation&) = delete;

    // See GdbServer.
    void receive(std::string_view bytes);
    void on_stop(const StopReason& why);
    void close();
    void abandon();

private:
    // The process, as far as the debugger knows.
    enum class Phase : uint8_t { stopped, running, over };
    // nullopt: none, or not yet.
    using Answer = std::optional<std::string>;

    void take(PacketReader::Arrival arrival);
    void start_work();
    // Takes one command after another while the process is stopped.
    static Task<void> work(std::shared_ptr<GdbConversation> self);
    void send(std::string_view content);
    void end();
    void give_up();

    // gdb_commands.cc
    Task<Answer> answer(std::string packet);
    Answer answer_at_once(std::string_view packet);
    std::string answer_query(std::string_view packet);
    std::string answer_setting(std::string_view packet);
    Answer answer_extended(std::string_view packet);
    std::string answer_features(std::string_view theirs);
    std::string pass_signals(std::string_view numbers);
    Task<Answer> run_command(std::string words);
    Task<std::string> set_breakpoint(std::string what, bool there);

    Answer resume(std::optional<Resumption> how);
    // The answer for which a debugger waits that let the process run.
    void tell_stop();
    bool passes(const StopReason& why);
    [[nodiscard]] bool has_ended() const {
        return stop_.kind == StopReason::Kind::exited || stop_.kind == StopReason::Kind::killed;
    }
    void kill();
    void detach();

    Debuggee& debuggee_;
    std::function<void(std::string)> send_;
    std::function<void()> hang_up_;

    PacketReader reader_;
    bool acknowledges_ = true;
    std::string last_sent_;  // while packets are acknowledged
    std::deque<std::string> waiting_;
    bool working_ = false;

    Phase phase_ = Phase::stopped;
    StopReason stop_;                       // the last
    std::optional<Resumption> resumption_;  // the last
    bool told_of_breakpoints_ = false;      // it understands "swbreak" in a stop reply
    bool told_of_exec_ = false;             // it understands "exec" in a stop reply
    bool interrupted_ = false;              // by the debugger, since then
    std::set<int> passed_signals_;          // with which it continues without a word

    GdbThreads threads_;
    GdbFiles files_;
    GdbTransfers transfers_;
};

}  // namespace gpr::debug
