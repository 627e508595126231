#include <doctest/doctest.h>

#include "base/log.h"
#include "base/suggest.h"
#include "tests/unit/temporary_folder.h"
#include "tools/duration.h"
#include "tools/health_report.h"
#include "tools/table.h"

using std::chrono::seconds;

TEST_CASE("durations") {
    CHECK(gpr::parse_duration("45s").value() == seconds(45));
    CHECK(gpr::parse_duration("90m").value() == seconds(5400));
    CHECK(gpr::parse_duration("12h").value() == seconds(43'200));
    CHECK(gpr::parse_duration("30d").value() == seconds(2'592'000));
    CHECK(gpr::parse_duration("2w").value() == seconds(1'209'600));
    for (const char* bad : {"", "d", "30", "-1d", "0s", "1y", "1dd", "1 d", "99999999999999999999d",
                            "9223372036854775807w", "36501d"}) {
        CAPTURE(bad);
        CHECK_FALSE(gpr::parse_duration(bad));
    }
}

TEST_CASE("nearest words") {
    const std::vector<std::string_view> known = {"exec", "acceptor", "token", "health"};
    CHECK(gpr::nearest_word("exce", known) == "exec");
    CHECK(gpr::nearest_word("aceptor", known) == "acceptor");
    CHECK(gpr::nearest_word("helth", known) == "health");
    CHECK(gpr::nearest_word("ls", known).empty());
    CHECK(gpr::nearest_word("frobnicate", known).empty());
}

TEST_CASE("tables line up and end without blanks") {
    CHECK(gpr::format_table({{"A", "BB"}, {"long", "x"}, {"", "y"}}) ==
          "A     BB\nlong  x\n      y\n");
}

TEST_CASE("a peer's report names what it lacks") {
    gpr::KernelFeatures known;
    gpr::HostDescription host;
    host.host_name = "far";
    for (const gpr::Feature* feature : known.all()) {
        if (feature != &known.uffd_move) host.features.emplace_back(feature->name);
    }
    const auto lacking = gpr::lacking_at(host, known);
    REQUIRE(lacking.size() == 1);
    CHECK(lacking.front() == &known.uffd_move);
    const std::string report = gpr::peer_report("far:7711", host, known);
    CHECK(report.find("MISSING there: uffd move") != std::string::npos);
    CHECK(report.find(gpr::cure_newer_kernel) != std::string::npos);
}

TEST_CASE("a cause that many features lack is told once") {
    gpr::KernelFeatures features;
    for (gpr::Feature* feature : {&features.userfaultfd, &features.uffd_missing, &features.uffd_wp,
                                  &features.uffd_shmem, &features.io_uring}) {
        feature->detail = "Permission denied";
        feature->cure = gpr::cure_setup;
    }
    for (const gpr::Feature* feature : features.all()) {
        const bool lacks = feature->cure == gpr::cure_setup || feature == &features.bpf;
        const_cast<gpr::Feature*>(feature)->present = !lacks;
    }
    CHECK(gpr::health_verdict(features, false) ==
          "MISSING: userfaultfd, and 3 more for that reason: Permission denied; run 'gpr setup' as "
          "root\nNOT OK: you cannot run gpr here yet: 1 problem. Optional: 1 missing ('gpr health "
          "--all' lists them).\nAn acceptor, also that of '--acceptor local', is started by root; "
          "you may use one.\n");
    for (const gpr::Feature* feature : features.all()) {
        const_cast<gpr::Feature*>(feature)->present = true;
    }
    CHECK(gpr::health_verdict(features, true) ==
          "OK: this host can run gpr. Optional: none missing.\n");
    CHECK(gpr::health_json(features)["ok"] == true);
}

TEST_CASE("a log goes to its file, from the level that was asked for") {
    const gpr::TemporaryFolder folder;
    const std::string path = folder.path() + "/log";
    const auto before = spdlog::default_logger();
    REQUIRE(gpr::start_logging(path, "info"));
    spdlog::debug("too quiet");
    spdlog::info("loud enough");
    spdlog::set_default_logger(before);
    std::ifstream stream(path);
    const std::string text((std::istreambuf_iterator<char>(stream)), {});
    CHECK(text.find("info loud enough\n") != std::string::npos);
    CHECK(text.find("too quiet") == std::string::npos);
    CHECK_FALSE(gpr::start_logging("/nonexistent/log", "info"));
    CHECK_FALSE(gpr::start_logging(path, "loud"));
}
