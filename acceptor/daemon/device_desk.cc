#include "acceptor/daemon/device_desk.h"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace gpr {
namespace {

// An inventory older than this is taken again before it is used.
constexpr std::chrono::seconds keeping_time{30};
// In addition to the time limit of the inventory's sources: for merging them.
constexpr std::chrono::milliseconds merging_time{1000};

void log_sources(const Inventory& inventory) {
    for (const InventorySource& source : inventory.sources) {
        if (source.state != "failed") continue;
        spdlog::warn("inventory: {} failed: {}", source.name, source.detail);
    }
}

}  // namespace

void DeviceDesk::ask(pid_t worker, const Hello& hello, Answer answer) {
    if ((hello.devices.empty() && !hello.want_inventory) || is_fresh()) {
        answer(decide(worker, hello));
        return;
    }
    waiting_.push_back({worker, hello, std::move(answer)});
    if (!taking_) start_taking();
}

void DeviceDesk::forget(pid_t worker) {
    std::erase_if(uses_, [&](const DeviceUse& use) { return use.worker == worker; });
    std::erase_if(waiting_, [&](const Waiting& waiting) { return waiting.worker == worker; });
}

std::vector<Device> DeviceDesk::devices() const {
    std::vector<Device> devices = known_.devices;
    note_uses(devices, uses_);
    return devices;
}

bool DeviceDesk::is_fresh() const { return taken_at_ && Clock::now() < *taken_at_ + keeping_time; }

void DeviceDesk::start_taking() {
    auto started = ProbeProcess::start({"all", [this] { return take_inventory(options_); }},
                                       options_.time_limit + merging_time);
    if (started) {
        taking_.emplace(std::move(*started));
        return;
    }
    known_ = Inventory{};
    known_.sources.push_back({"all", "failed", started.error().message()});
    answer_all();
}

void DeviceDesk::look() {
    if (!taking_ || !taking_->is_done()) return;
    known_ = taking_->take_answer();
    taking_.reset();
    taken_at_ = Clock::now();
    log_sources(known_);
    answer_all();
}

void DeviceDesk::answer_all() {
    for (Waiting& waiting : std::exchange(waiting_, {})) {
        waiting.answer(decide(waiting.worker, waiting.hello));
    }
}

Result<Welcome> DeviceDesk::decide(pid_t worker, const Hello& hello) {
    Welcome welcome;
    note_uses(known_.devices, uses_);
    if (!hello.devices.empty()) {
        GPR_TRY(welcome.devices, choose_devices(known_.devices, hello.devices));
    }
    if (!hello.want_inventory && !hello.only_looks) note(worker, hello, welcome.devices);
    welcome.inventory = known_;
    if (taken_at_) {
        const auto age = Clock::now() - *taken_at_;
        welcome.inventory.age_ms = static_cast<uint64_t>(
            std::chrono::duration_cast<std::chrono::milliseconds>(age).count());
    }
    return welcome;
}

void DeviceDesk::note(pid_t worker, const Hello& hello, const std::vector<Device>& given) {
    DeviceUse use{worker, {}, hello.devices.count != 0};
    for (const Device& device : given) {
        use.nodes.insert(use.nodes.end(), device.nodes.begin(), device.nodes.end());
    }
    if (hello.devices.empty() && !hello.paths.empty()) {
        use.nodes = nodes_wanted(hello.paths, list_device_nodes(options_.root, options_.exports));
        const auto hidden = hidden_nodes(known_.devices, {});
        std::erase_if(use.nodes, [&](const std::string& node) {
            return std::find(hidden.begin(), hidden.end(), node) != hidden.end();
        });
    }
    if (!use.nodes.empty()) uses_.push_back(std::move(use));
}

}  // namespace gpr
