// What `gpr exec --stats` tells: words for people, JSON for programs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "monitor/node/usage.h"
#include "monitor/paging/pager.h"
#include "monitor/rules/function_symbols.h"

namespace gpr {

struct StatsReport {
    std::optional<int> exit_status;  // none: it goes on
    double wall_s = 0;
    uint64_t crossings = 0;
    uint64_t calls_native = 0, calls_fd_owner = 0, calls_by_rule = 0, calls_home = 0;
    // Of the crossings: for the calls that a thread makes and the pages that it wants.
    uint64_t drawn_home = 0, drawn_away = 0;
    uint64_t images = 0;         // programs that were started, by fork and exec too
    bool calls_watched = false;  // home's; else FUTEX_WAKE is stopped
    uint64_t futex_wakes = 0;    // that home told the other node
    Usage home_cpu;
    PagerStats home;
    struct Acceptor {
        std::string name;
        uint64_t arrivals = 0;  // of threads, from home
        Usage cpu;
        PagerStats pages;
        uint64_t bytes_in = 0, bytes_out = 0;  // of home's link to it
    };
    std::vector<Acceptor> acceptors;               // by node, from 1 on
    std::map<std::string, FunctionUse> functions;  // by LIBRARY!NAME; those of `fn` rules

    // Keys are never renamed; new ones may come, and then the version grows.
    [[nodiscard]] std::string json() const;
    // Several lines, each after `gpr: `.
    [[nodiscard]] std::string words() const;
    // What would help most, where much was lost; else empty.
    [[nodiscard]] std::string advice() const;

private:
    // Of all acceptors.
    [[nodiscard]] Acceptor remote() const;
};

}  // namespace gpr
