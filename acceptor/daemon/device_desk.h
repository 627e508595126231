// The daemon's record of devices: the inventory, which is taken on demand and kept for a while, and
// which session has what.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "acceptor/box/probe_process.h"
#include "acceptor/devices/device_choice.h"
#include "acceptor/devices/inventory.h"

namespace gpr {

class DeviceDesk {
public:
    using Clock = std::chrono::steady_clock;
    // What a worker passes on to its peer: the devices given, and the inventory if there is one.
    using Answer = std::function<void(Result<Welcome>)>;

    explicit DeviceDesk(InventoryOptions options) : options_(std::move(options)) {}

    // Answers at once, or when the inventory has been taken.
    void ask(pid_t worker, const Hello& hello, Answer answer);
    // The worker has ended: frees its devices.
    void forget(pid_t worker);

    // The known devices, and who has them.
    [[nodiscard]] std::vector<Device> devices() const;

    // While an inventory is being taken: look() when this is readable or at the deadline.
    [[nodiscard]] int fd() const { return taking_ ? taking_->fd() : -1; }
    [[nodiscard]] bool is_busy() const { return taking_.has_value(); }
    void look();

private:
    struct Waiting {
        pid_t worker;
        Hello hello;
        Answer answer;
    };
    [[nodiscard]] bool is_fresh() const;
    void start_taking();
    void answer_all();
    Result<Welcome> decide(pid_t worker, const Hello& hello);
    void note(pid_t worker, const Hello& hello, const std::vector<Device>& given);

    InventoryOptions options_;
    Inventory known_;  // the latest inventory; empty before the first one is taken
    std::optional<Clock::time_point> taken_at_;
    std::optional<ProbeProcess> taking_;
    std::vector<Waiting> waiting_;
    std::vector<DeviceUse> uses_;
};

}  // namespace gpr
