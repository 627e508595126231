// sim --seeds N --first S --nodes N --verbose: runs the coherence core through N seeded worlds.
// sim --replay FILE: what a real session's directory did, see sim_replay.h.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "mm/directory_log.h"
#include "sim_replay.h"
#include "sim_world.h"

namespace {

// Every eighth world is recorded, each other of them with so little memory that it overwrites the
// oldest.
size_t record_bytes(uint64_t seed) {
    if (seed % 8 != 0) return 0;
    return seed % 16 == 0 ? 4 * gpr::DirectoryLog::least_bytes : size_t{4} << 20;
}

}  // namespace

int main(int argc, char** argv) {
    uint64_t seeds = 1000, first = 1;
    std::vector<unsigned> nodes{2, 3, 4};
    bool verbose = false;
    CLI::App app{"Seeded simulator of page coherence"};
    app.add_option("--seeds", seeds, "how many seeds");
    app.add_option("--first", first, "the first seed");
    app.add_option("--nodes", nodes, "so many; several take turns (default 2, 3 and 4)");
    std::string record;
    app.add_flag("--verbose", verbose, "print every event");
    app.add_option("--replay", record, "a file that 'gpr exec --record' wrote, instead of seeds");
    CLI11_PARSE(app, argc, argv);
    if (!record.empty()) return gpr::sim::replay_file(record, verbose);

    gpr::sim::Totals sum;
    uint64_t failures = 0, longest_seed = 0;
    for (uint64_t seed = first; seed < first + seeds; ++seed) {
        const gpr::sim::Settings settings{nodes[seed % nodes.size()], seed, verbose,
                                          record_bytes(seed)};
        try {
            const gpr::sim::Totals t = gpr::sim::World(settings).run();
            sum.events += t.events;
            sum.instructions += t.instructions;
            sum.messages += t.messages;
            sum.faults += t.faults;
            sum.pins += t.pins;
            sum.drops += t.drops;
            sum.pushes += t.pushes;
            sum.acquires += t.acquires;
            sum.collects += t.collects;
            sum.forks += t.forks;
            sum.copies += t.copies;
            sum.anchored += t.anchored;
            sum.markers_kept += t.markers_kept;
            sum.markers_reached += t.markers_reached;
            sum.rights_given += t.rights_given;
            sum.replayed += t.replayed;
            sum.overwritten += t.overwritten;
            sum.percent_of_limit = std::max(sum.percent_of_limit, t.percent_of_limit);
            if (t.pins > 0) {
                sum.longest_pinned_us = std::max(sum.longest_pinned_us, t.longest_us);
                continue;
            }
            if (t.longest_us > sum.longest_us) longest_seed = seed;
            sum.longest_us = std::max(sum.longest_us, t.longest_us);
        } catch (const gpr::sim::Failure& failure) {
            fmt::print("FAILED: --first {} --seeds 1 --nodes {}: {}\n", seed, settings.nodes,
                       failure.what());
            std::fflush(stdout);
            if (++failures == 10) break;
        }
    }
    fmt::print(
        "{} seeds, {} failed; {} instructions, {} faults, {} messages, {} pushes ({} of a mere "
        "right), {} drops, "
        "{} pins, {} anchored, {} acquires, {} collects, {} forks, {} copies, {} markers kept, {} "
        "reached, "
        "{} decisions replayed ({} records overwritten); longest "
        "instruction {} us (seed {}), "
        "beside devices {} us, at most "
        "{} % of the limit\n",
        seeds, failures, sum.instructions, sum.faults, sum.messages, sum.pushes, sum.rights_given,
        sum.drops, sum.pins, sum.anchored, sum.acquires, sum.collects, sum.forks, sum.copies,
        sum.markers_kept, sum.markers_reached, sum.replayed, sum.overwritten, sum.longest_us,
        longest_seed, sum.longest_pinned_us, sum.percent_of_limit);
    // So many worlds, and something not seen in any: it would not be tested.
    if (seeds >= 100 &&
        (sum.markers_reached == 0 || sum.rights_given == 0 || sum.forks == 0 || sum.copies == 0 ||
         sum.replayed == 0 || (seeds >= 1000 && sum.overwritten == 0))) {
        fmt::print(
            "FAILED: no thread reached a marker, took a mere right along, forked, or was copied, "
            "or no record "
            "was replayed\n");
        return 1;
    }
    return failures == 0 ? 0 : 1;
}
