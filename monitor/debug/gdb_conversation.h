// The implementation of GdbServer. Outlives it while a command waits for the program's memory.
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
#include "monitor/debug/gdb_processes.h"
#include "monitor/debug/gdb_resumption.h"
#include "monitor/debug/gdb_thread_locals.h"
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
    // The state of the process, as far as the debugger knows; over: nothing is sent any more.
    enum class Phase : uint8_t { stopped, running, over };
    // nullopt: no answer, or it is sent later.
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
    [[nodiscard]] std::string current_thread() const;
    std::string answer_features(std::string_view theirs);
    std::string pass_signals(std::string_view numbers);
    Task<Answer> run_command(std::string words);
    Task<std::string> set_breakpoint(std::string what, bool there);
    std::string set_hardware(uint64_t type, const HardwareBreakpoint& one, bool there);
    std::string catch_calls(std::string_view what);
    Answer detach_from(std::string_view process);

    // gdb_stops.cc: how the processes continue and stop.
    std::optional<Resumption> resumption_of(std::string_view packet);
    // False: a process that the packet is about cannot be debugged.
    Task<bool> prepare_for(std::string packet);
    Answer resume(std::optional<Resumption> how);
    bool let_go(const Resumption& how);
    bool passes(const StopReason& why);
    void halt_others();
    // A stop of which the debugger is yet to be told; nullopt: there is none.
    std::optional<StopReason> take_untold(const Resumption* how);
    // Answers the debugger's last "continue" or "step" with a stop reply.
    void tell_stop(const StopReason& why);
    void kill(pid_t pid);
    void detach(pid_t pid);
    // The debugger does not have this process any more. The last one ends the conversation.
    void drop(pid_t pid);

    GdbProcesses processes_;
    std::function<void(std::string)> send_;
    std::function<void()> hang_up_;

    PacketReader reader_;
    bool acknowledges_ = true;
    std::string last_sent_;  // to be repeated on request, while packets are acknowledged
    std::deque<std::string> waiting_;
    bool working_ = false;

    Phase phase_ = Phase::stopped;
    StopReason stop_;                       // the latest that was told
    pid_t first_stopped_ = 0;               // the process for which the others have to stop
    std::optional<Resumption> resumption_;  // the latest
    bool told_of_breakpoints_ = false;      // the debugger understands "swbreak" in a stop reply
    bool told_of_exec_ = false;             // the debugger understands "exec" in a stop reply
    bool told_of_hardware_ = false;         // likewise "hwbreak"
    bool interrupted_ = false;              // by the debugger, since the latest resumption
    std::set<int> passed_signals_;          // delivered without telling the debugger

    GdbThreads threads_;
    GdbFiles files_;
    GdbTransfers transfers_;
    GdbThreadLocals thread_locals_;
};

}  // namespace gpr::debug
