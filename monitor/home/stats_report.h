// The report of `gpr exec --stats`: text for people, JSON for programs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "monitor/node/node_counts.h"
#include "monitor/node/usage.h"
#include "monitor/rules/function_symbols.h"

namespace gpr {

struct StatsReport {
    std::optional<int> exit_status;  // none: the program still runs
    double wall_s = 0;
    uint64_t crossings = 0;
    bool rested = false;  // processes began at rest
    CallCounts calls;     // that workers saw
    // Crossings by gravity.
    uint64_t drawn_home = 0, drawn_away = 0;
    uint64_t images = 0;         // program images started, by fork and exec too
    bool calls_watched = false;  // by BPF at home; otherwise FUTEX_WAKE is intercepted
    uint64_t futex_wakes = 0;    // that home sent to acceptors
    Usage home_cpu;
    PagerStats home;
    struct Acceptor {
        std::string name;
        uint64_t arrivals = 0;  // threads that came from home
        Usage cpu;
        PagerStats pages;
        uint64_t bytes_in = 0, bytes_out = 0;  // of home's link to it
    };
    std::vector<Acceptor> acceptors;               // by node, from 1
    std::map<std::string, FunctionUse> functions;  // by LIBRARY!NAME, for `fn` rules

    // Keys are never renamed; when keys are added, the version number grows.
    [[nodiscard]] std::string json() const;
    // Several lines, each prefixed by `gpr: `.
    [[nodiscard]] std::string words() const;
    // What would help most, if much time was lost; else empty.
    [[nodiscard]] std::string advice() const;

private:
    // The sum over all acceptors.
    [[nodiscard]] Acceptor remote() const;
};

}  // namespace gpr
