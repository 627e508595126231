// How often each call was made, how long it took, and how often it failed: `gpr trace -c`.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tools/traced_call.h"

namespace gpr {

class TraceSummary {
public:
    void add(const TracedCall& call, uint64_t now_ns);
    // Those that took longest first.
    [[nodiscard]] std::string text() const;

private:
    struct Row {
        uint64_t calls = 0, errors = 0, took_ns = 0;
    };
    std::map<std::string, Row> rows_;
};

}  // namespace gpr
