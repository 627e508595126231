// Documents that gdb reads piece by piece: qXfer packets.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "monitor/debug/debuggee.h"
#include "monitor/debug/gdb_threads.h"

namespace gpr::debug {

class GdbTransfers {
public:
    GdbTransfers(const GdbProcesses& processes, const GdbThreads& threads)
        : processes_(processes), threads_(threads) {}

    // request: what follows "qXfer:". Returns an empty string for an unknown one.
    [[nodiscard]] std::string answer(std::string_view request);

private:
    [[nodiscard]] std::optional<std::string> document(std::string_view object,
                                                      std::string_view annex);

    const GdbProcesses& processes_;
    const GdbThreads& threads_;
    // Kept from the first piece to the last, so that the pieces fit together.
    std::string object_;
    std::string document_;
};

}  // namespace gpr::debug
