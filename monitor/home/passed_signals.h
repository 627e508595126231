// Signals for a thread at an acceptor wait in home's kernel; only one at a time is on its way to
// the thread. docs/decisions/0024-signals-wait-at-home.md
#pragma once

#include <signal.h>

#include <cstdint>
#include <optional>

#include "monitor/home/part.h"
#include "monitor/home/sent_signal.h"

namespace gpr::home {

class PassedSignals {
public:
    explicit PassedSignals(Home& home) : home_(home) {}

    static void leave_in_kernel(HomeThread& thread, int signal);
    static void keep_order(HomeThread& thread, int signal);
    void pass_on(HomeThread& thread, const siginfo_t& info);
    void handler_begun(HomeThread& thread, uint32_t serial, uint64_t mask);
    void came_back(HomeThread& thread, const siginfo_t& info, uint32_t serial);
    Task<void> take_back(HomeThread& thread, bool to_shadow);
    Task<void> give_to_others(HomeThread& thread);
    static void wake_others(const HomeThread& thread, uint64_t mask);
    // A call of a thread at an acceptor is about to be made here; nullopt if it sends no signal.
    [[nodiscard]] std::optional<SentSignal> about_to_send(uint32_t number,
                                                          const SyscallArguments& args) const;
    Task<void> pass_on_sent(SentSignal signal);

private:
    static Task<void> send_to_itself(HomeThread& thread, siginfo_t info);
    Task<void> let_others_come(HomeThread& thread, PassedSignal begun, uint64_t mask);
    Task<void> take_own_mask(HomeThread& thread, uint64_t mask);

    Home& home_;
};

}  // namespace gpr::home
