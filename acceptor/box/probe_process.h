// Questions that may crash or hang the process that asks them; each is asked in its own process.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "transport/inventory.h"

namespace gpr {

struct Probe {
    std::string name;
    std::function<Inventory()> ask;
};

// Runs all at once. A probe that does not answer in time, or dies, contributes only a source that
// says so. A process that cannot even be killed (it hangs in the kernel) is left behind.
std::vector<Inventory> run_probes(const std::vector<Probe>& probes,
                                  std::chrono::milliseconds time_limit);

// The same for one probe, without waiting: its answer arrives at a descriptor.
class ProbeProcess {
public:
    static Result<ProbeProcess> start(const Probe& probe, std::chrono::milliseconds time_limit);
    ProbeProcess(ProbeProcess&&) noexcept;
    ProbeProcess& operator=(ProbeProcess&&) = delete;
    // Kills the process and what it has started.
    ~ProbeProcess();

    // Becomes readable when is_done() should be called again.
    [[nodiscard]] int fd() const { return answer_.get(); }
    [[nodiscard]] std::chrono::steady_clock::time_point deadline() const { return deadline_; }
    // Reads what has arrived. False if the answer is incomplete and there is time left.
    bool is_done();
    Inventory take_answer();

private:
    ProbeProcess() = default;
    [[nodiscard]] Inventory failed(const std::string& why) const;
    std::string how_it_ended();

    std::string name_;
    pid_t pid_ = -1;
    Fd answer_;
    std::chrono::milliseconds time_limit_{};
    std::chrono::steady_clock::time_point deadline_;
    std::vector<std::byte> bytes_;
    bool ended_ = false;  // nothing more will come
};

}  // namespace gpr
