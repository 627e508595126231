// Making sandboxes in tests, and looking at what is in them.
#pragma once

#include <doctest/doctest.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "acceptor/box/sandbox.h"
#include "tests/unit/acceptor/stub_process.h"

namespace gpr::test {

inline std::unique_ptr<Sandbox> make_sandbox(const SandboxOptions& options = {}) {
    auto sandbox = Sandbox::create(options);
    if (!sandbox) FAIL(sandbox.error().message());
    return std::move(*sandbox);
}

inline StubProcess make_process(Sandbox& sandbox, pid_t pid, std::vector<int> kept_fds = {}) {
    auto process = StubProcess::spawn(sandbox, pid, std::move(kept_fds));
    if (!process) FAIL(process.error().message());
    return std::move(*process);
}

inline std::string namespace_link(pid_t pid, const char* kind) {
    std::error_code gone;
    return std::filesystem::read_symlink(fmt::format("/proc/{}/ns/{}", pid, kind), gone).string();
}

inline std::string status_field(pid_t pid, const std::string& name) {
    std::ifstream file(fmt::format("/proc/{}/status", pid));
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with(name + ":\t")) return line.substr(name.size() + 2);
    }
    return "no " + name;
}

// Zombies included.
inline int processes_in(const std::string& pid_namespace) {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        const auto name = entry.path().filename().string();
        if (name.find_first_not_of("0123456789") != std::string::npos) continue;
        if (namespace_link(std::stoi(name), "pid") == pid_namespace) ++count;
    }
    return count;
}

inline int64_t monotonic_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

inline std::set<int> open_fds(pid_t pid) {
    std::set<int> fds;
    for (const auto& entry : std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", pid))) {
        fds.insert(std::stoi(entry.path().filename().string()));
    }
    return fds;
}

}  // namespace gpr::test
