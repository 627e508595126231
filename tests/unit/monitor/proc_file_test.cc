#include "monitor/node/proc_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <string>

using namespace gpr;

namespace {

Elsewhere elsewhere() {
    Elsewhere more;
    more.used.total_ns = 3'000'000'000;
    more.used.user_ns = 2'000'000'000;
    more.used.minor_faults = 7;
    more.used.peak_bytes = 64 << 10;
    more.used.resident = {8 << 10, 4 << 10, 4 << 10};
    more.by_children.user_ns = more.by_children.total_ns = 1'000'000'000;
    more.hidden = 1 << 20;
    more.hidden_data = 100 << 10;
    return more;
}

}  // namespace

TEST_CASE("A file of /proc is known by what it is about") {
    int fd = open("/proc/self/statm", O_RDONLY);
    auto file = proc_file_of(getpid(), fd);
    REQUIRE(file);
    CHECK(file->process == getpid());
    CHECK(file->thread == 0);
    CHECK(file->name == "statm");
    close(fd);
    std::string of_thread = "/proc/self/task/" + std::to_string(gettid()) + "/status";
    fd = open(of_thread.c_str(), O_RDONLY);
    file = proc_file_of(getpid(), fd);
    REQUIRE(file);
    CHECK(file->process == getpid());
    CHECK(file->thread == gettid());
    CHECK(file->name == "status");
    close(fd);
    fd = open("/proc/stat", O_RDONLY);
    CHECK_FALSE(proc_file_of(getpid(), fd));
    close(fd);
    CHECK_FALSE(proc_file_of(getpid(), fd));
}

TEST_CASE("status gets what is elsewhere and loses what is hidden") {
    std::string shown = status_with(
        "Name:\tVmRSS\nVmPeak:\t    3776 kB\nVmSize:\t    2000 kB\nVmHWM:\t    1944 kB\n"
        "VmRSS:\t    1000 kB\nRssAnon:\t     148 kB\nRssFile:\t     252 kB\nRssShmem:\t     600 "
        "kB\n"
        "VmData:\t      50 kB\nThreads:\t1\n",
        elsewhere());
    CHECK(shown ==
          "Name:\tVmRSS\nVmPeak:\t    2752 kB\nVmSize:\t     976 kB\nVmHWM:\t    2008 kB\n"
          "VmRSS:\t    1016 kB\nRssAnon:\t     156 kB\nRssFile:\t     256 kB\nRssShmem:\t     604 "
          "kB\n"
          "VmData:\t       0 kB\nThreads:\t1\n");
}

TEST_CASE("what is there for the main stack to grow into is not shown, what mlock took is") {
    Elsewhere more;
    more.stack = {128 << 10, 1 << 20, 512 << 10};
    more.locked = 12 << 10;
    CHECK(status_with("VmSize:\t    4096 kB\nVmLck:\t       0 kB\nVmData:\t    1000 kB\n"
                      "VmStk:\t     640 kB\n",
                      more) ==
          "VmSize:\t    3072 kB\nVmLck:\t      12 kB\nVmData:\t     488 kB\n"
          "VmStk:\t     128 kB\n");
    CHECK(statm_with("1024 426 398 5 0 500 0\n", more) == "768 426 398 5 0 244 0\n");
}

TEST_CASE("stat keeps a name that looks like its fields") {
    std::string text =
        "17 (a) R 1 (b) S 1 2 3 4 5 6 100 200 300 400 500 600 700 800 20 0 1 0 99 "
        "2097152 50 18446744073709551615 1 2\n";
    CHECK(stat_with(text, elsewhere()) ==
          "17 (a) R 1 (b) S 1 2 3 4 5 6 107 200 300 400 700 700 800 800 20 0 1 0 99 "
          "1048576 54 18446744073709551615 1 2\n");
    CHECK(stat_with("17 (a) R 1 2\n", elsewhere()) == "17 (a) R 1 2\n");
    CHECK(stat_with("", elsewhere()).empty());
}

TEST_CASE("What a thread does is told in stat and in status") {
    Elsewhere more;
    more.state = ThreadState{};
    std::string text = "17 (a) S";
    for (int field = 4; field <= 37; field++) text += field == 35 ? " 1" : " 0";
    std::string shown = stat_with(text + "\n", more);
    CHECK(shown.starts_with("17 (a) R 0"));
    CHECK(shown.find('1', 3) == std::string::npos);
    CHECK(status_with("State:\tS (sleeping)\n", more) == "State:\tR (running)\n");
    more.state = ThreadState{'S', "pipe_read"};
    CHECK(stat_with(text + "\n", more) == text + "\n");
    more.state.reset();
    CHECK(status_with("State:\tZ (zombie)\n", more) == "State:\tZ (zombie)\n");
}

TEST_CASE("statm counts pages") {
    CHECK(statm_with("765 426 398 5 0 123 0\n", elsewhere()) == "509 430 400 5 0 98 0\n");
    CHECK(statm_with("0\n", elsewhere()) == "0\n");
}
