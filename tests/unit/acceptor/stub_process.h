// A program for empty processes in tests: parks in a user-notified call, runs the system call that
// the test put into the mailbox, parks again.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "acceptor/box/empty_process.h"
#include "acceptor/box/sandbox.h"

namespace gpr::test {

// Where the test's stub and mailbox are in every process: apart from all else in their high words.
inline constexpr uint64_t code_address = 0x550000000000;
inline constexpr uint64_t mailbox_address = 0x551000000000;
inline constexpr uint64_t mailbox_size = 4 * page_size;

class StubProcess {
public:
    static Result<StubProcess> spawn(Sandbox& sandbox, pid_t wanted_pid,
                                     std::vector<int> kept_fds = {});
    StubProcess(StubProcess&&) noexcept;
    StubProcess& operator=(StubProcess&&) = delete;
    ~StubProcess();

    // The kernel's answer: -errno on failure. `meanwhile` runs when the call has been started.
    long call(long number, std::vector<uint64_t> arguments = {},
              const std::function<void()>& meanwhile = {});
    // Starts a call and does not wait for its end.
    void start_call(long number, std::vector<uint64_t> arguments);
    // Waits for a thread to park; its pid in our namespace. 0: nobody did for ten seconds.
    pid_t await_park();

    // Memory the process sees at mailbox_data(), and we here.
    [[nodiscard]] uint8_t* data() const { return mailbox_ + page_size; }
    static uint64_t data_address() { return mailbox_address + page_size; }
    uint64_t put(const std::string& text);

    EmptyProcess process;

private:
    StubProcess() = default;
    uint8_t* mailbox_ = nullptr;
    uint64_t notification_ = 0;
};

}  // namespace gpr::test
