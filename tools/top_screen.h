// What `gpr top` shows: sessions of this host by their threads, or those of an acceptor, and what
// they did from one picture to the next.
#pragma once

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "tools/settings.h"

namespace gpr {

class TopScreen {
public:
    virtual ~TopScreen() = default;
    // Looks again; the first look only begins. Nothing is left to see: false.
    virtual Result<bool> look() = 0;
    [[nodiscard]] virtual std::string picture() const = 0;
    [[nodiscard]] virtual nlohmann::json json() const = 0;
};

// pid: of the one session that is wanted; 0: all that this user has, or everybody.
std::unique_ptr<TopScreen> screen_of_sessions(pid_t pid, bool everybody);
// The credential comes from the settings.
std::unique_ptr<TopScreen> screen_of_acceptor(std::string address, Settings settings);

}  // namespace gpr
