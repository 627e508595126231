// Questions that may crash or hang whoever asks, each in a process of its own.
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

// All at once. Of one that does not answer in time, or dies, the inventory has only a source that
// says so. What does not even die when it is killed (it hangs in the kernel) is left behind.
std::vector<Inventory> run_probes(const std::vector<Probe>& probes,
                                  std::chrono::milliseconds time_limit);

// The same for one, without waiting: the answer comes to a descriptor.
class ProbeProcess {
public:
    static Result<ProbeProcess> start(const Probe& probe, std::chrono::milliseconds time_limit);
    ProbeProcess(ProbeProcess&&) noexcept;
    ProbeProcess& operator=(ProbeProcess&&) = delete;
    // Kills it and what it started.
    ~ProbeProcess();

    // Readable when is_done() should be asked again.
    [[nodiscard]] int fd() const { return answer_.get(); }
    [[nodiscard]] std::chrono::steady_clock::time_point deadline() const { return deadline_; }
    // Reads what has come. False: that is not all yet, and there is time.
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
