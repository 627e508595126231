#include "monitor/home/stats_report.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/address.h"

namespace gpr {

namespace {

constexpr int json_version = 4;

double seconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

// 1,234,567
std::string grouped(uint64_t number) {
    const std::string digits = std::to_string(number);
    std::string text;
    for (size_t i = 0; i < digits.size(); ++i) {
        if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
        text += digits[i];
    }
    return text;
}

std::string counted(uint64_t number, const char* noun) {
    return fmt::format("{} {}{}", grouped(number), noun, number == 1 ? "" : "s");
}

std::string megabytes(uint64_t bytes) {
    return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

// LIBRARY!NAME with the name demangled.
std::string readable(const std::string& function) {
    const size_t mark = function.find('!') + 1;
    int status = 0;
    char* plain = abi::__cxa_demangle(function.c_str() + mark, nullptr, nullptr, &status);
    if (status != 0) return function;
    std::string text = function.substr(0, mark) + plain;
    std::free(plain);
    return text;
}

// values: home's and each acceptor's.
std::string row(const char* what, const std::vector<std::string>& values) {
    std::string text = fmt::format("gpr:   {:<26}", what);
    for (const std::string& value : values) text += fmt::format("{:>20}", value);
    return text + '\n';
}

std::string duration(double s) { return fmt::format("{:.2f} s", s); }

// Above these the program has lost enough time to give advice.
constexpr double most_share_of_waiting = 0.25, most_waiting_s = 0.3;
constexpr double most_calls_per_s = 3000, most_crossings_per_s = 1000;
// The same for a program that neither computes nor waits for pages most of the time: over a link
// with a round trip of milliseconds it cannot make many more calls.
constexpr double most_calls_per_idle_s = 200;
constexpr uint64_t most_images = 8;
constexpr double longest_start_s = 1;  // a program that runs longer is not dominated by its start
constexpr double shortest_run_s = 0.5;

}  // namespace

StatsReport::Acceptor StatsReport::remote() const {
    Acceptor sum;
    for (const Acceptor& each : acceptors) {
        sum.cpu += each.cpu;
        sum.pages.waited_ns += each.pages.waited_ns;
        sum.pages.pages_in += each.pages.pages_in;
    }
    return sum;
}

std::string StatsReport::advice() const {
    const Acceptor away = remote();
    if (wall_s < shortest_run_s) return "";
    const double waited = seconds(home.waited_ns + away.pages.waited_ns);
    const double cpu = seconds(home_cpu.total_ns + away.cpu.total_ns);
    const bool start = wall_s < longest_start_s * static_cast<double>(images);
    if (images >= most_images && start && cpu < wall_s / 2) {
        return fmt::format(
            "{} programs were started one after another, at {:.0f} ms each; start the program "
            "itself rather than a script or shim around it",
            grouped(images), 1000 * wall_s / static_cast<double>(images));
    }
    if (waited > most_waiting_s && waited > most_share_of_waiting * wall_s) {
        const uint64_t less = std::min(home.pages_in, away.pages.pages_in);
        const bool ping_pong = less > std::max(home.pages_in, away.pages.pages_in) / 2;
        return fmt::format(
            "{:.0f} % of the time threads waited for memory of the other host; {}",
            std::min(100.0, 100 * waited / wall_s),
            ping_pong ? "both write the same pages: keep what shares memory on one host"
                      : "choose code that computes much on little data (--split lib:GLOB), or a "
                        "faster link");
    }
    const bool idle = cpu + waited < wall_s / 2;
    const double most_calls = (idle ? most_calls_per_idle_s : most_calls_per_s) * wall_s;
    if (static_cast<double>(calls.home) > most_calls) {
        return fmt::format(
            "{} system calls were carried home, {} a second; leave code that works on files and "
            "pipes at home, and choose what computes (--split lib:GLOB)",
            grouped(calls.home),
            grouped(static_cast<uint64_t>(static_cast<double>(calls.home) / wall_s)));
    }
    if (static_cast<double>(crossings) > most_crossings_per_s * wall_s) {
        return fmt::format(
            "threads crossed {} times a second; choose larger pieces of code, so that "
            "one call does more",
            grouped(static_cast<uint64_t>(static_cast<double>(crossings) / wall_s)));
    }
    return "";
}

std::string StatsReport::words() const {
    const auto pages = [](uint64_t number) {
        return fmt::format("{} ({})", grouped(number), megabytes(number * page_size));
    };
    std::string text =
        exit_status ? fmt::format("gpr: exit status {} after {}\n", *exit_status, duration(wall_s))
                    : fmt::format("gpr: runs since {}\n", duration(wall_s));
    const auto line = [&](const char* what, const std::string& at_home, auto&& at_acceptor) {
        std::vector<std::string> values{at_home};
        for (const Acceptor& each : acceptors) values.push_back(at_acceptor(each));
        text += row(what, values);
    };
    uint64_t received = 0;
    for (const Acceptor& each : acceptors) received += each.bytes_in;
    line("", "home", [&](const Acceptor& each) {
        return acceptors.size() == 1 ? std::string("acceptor") : each.name;
    });
    line("processor time", duration(seconds(home_cpu.total_ns)),
         [](const Acceptor& each) { return duration(seconds(each.cpu.total_ns)); });
    line("waited for pages", duration(seconds(home.waited_ns)),
         [](const Acceptor& each) { return duration(seconds(each.pages.waited_ns)); });
    line("pages received", pages(home.pages_in),
         [&](const Acceptor& each) { return pages(each.pages.pages_in); });
    line("received over the link", megabytes(received),
         [](const Acceptor& each) { return megabytes(each.bytes_out); });
    text += fmt::format("gpr: {}, {} carried home", counted(crossings, "crossing"),
                        counted(calls.home, "system call"));
    if (calls.delegated > 0) {
        text += fmt::format(", {} about {} answered there", grouped(calls.delegated),
                            counted(calls.delegations, "file"));
    }
    if (calls.remembered > 0) {
        text += fmt::format(", {} repeated there", counted(calls.remembered, "look-up"));
    }
    if (calls.shown_contents > 0) {
        text += fmt::format(", {} shown from its cache", counted(calls.shown_contents, "mapping"));
    }
    text += '\n';
    if (rested && crossings == 0) {
        text +=
            "gpr: all of it ran at home: nothing computed for long, or needed what an acceptor "
            "has (--split all sends it)\n";
    }
    for (const auto& [name, use] : functions) {
        text += fmt::format("gpr: {}: {}, {} of them calls\n", readable(name),
                            counted(use.crossings, "crossing"), grouped(use.calls));
    }
    const std::string advised = advice();
    return advised.empty() ? text : text + "gpr: advice: " + advised + '\n';
}

std::string StatsReport::json() const {
    auto node = [](const std::string& name, Usage cpu, const PagerStats& p, uint64_t in,
                   uint64_t out) {
        return nlohmann::json{{"name", name},
                              {"cpu_s", seconds(cpu.total_ns)},
                              {"user_s", seconds(cpu.user_ns)},
                              {"faults", p.faults},
                              {"waited_s", seconds(p.waited_ns)},
                              {"pages_in", p.pages_in},
                              {"pages_out", p.pages_out},
                              {"bytes_in", in},
                              {"bytes_out", out}};
    };
    uint64_t received = 0, sent = 0;
    nlohmann::json nodes = nlohmann::json::array({nullptr});
    for (const Acceptor& each : acceptors) {
        received += each.bytes_in;
        sent += each.bytes_out;
        nodes.push_back(node(each.name, each.cpu, each.pages, each.bytes_out, each.bytes_in));
        nodes.back()["arrivals"] = each.arrivals;
    }
    nodes[0] = node("home", home_cpu, home, received, sent);
    for (size_t i = 0; i < nodes.size(); i++) nodes[i]["node"] = i;
    nlohmann::json out{{"version", json_version},
                       {"exit_status", nullptr},
                       {"wall_s", wall_s},
                       {"crossings", crossings},
                       {"images", images},
                       {"gravity", {{"home", drawn_home}, {"away", drawn_away}}},
                       {"syscalls",
                        {{"native", calls.native},
                         {"fd_owner", calls.fd_owner},
                         {"by_rule", calls.by_rule},
                         {"delegated", calls.delegated},
                         {"remembered", calls.remembered},
                         {"home", calls.home}}},
                       {"delegated_files", calls.delegations},
                       {"shown_contents", calls.shown_contents},
                       {"futexes", {{"watched", calls_watched}, {"wakes_told", futex_wakes}}},
                       {"nodes", nodes},
                       {"advice", advice()}};
    if (exit_status) out["exit_status"] = *exit_status;
    out["functions"] = nlohmann::json::object();
    for (const auto& [name, use] : functions) {
        out["functions"][name] = {{"crossings", use.crossings}, {"calls", use.calls}};
    }
    // Names of functions and acceptors may contain any bytes.
    return out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace gpr
