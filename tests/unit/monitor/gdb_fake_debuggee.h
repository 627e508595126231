// A process in memory for the tests of the gdb server, and the debugger's end of the wire.
#pragma once

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "monitor/debug/debuggee.h"
#include "monitor/debug/gdb_packets.h"
#include "monitor/tracee/extended_state.h"

namespace gpr::debug {

struct FakeDebuggee : Debuggee, DebuggeeMemory, DebuggeeTraps {
    static constexpr pid_t its_pid = 0x100;
    static constexpr uint64_t memory_at = 0x1000;

    const pid_t id;
    std::map<pid_t, Registers> state{{id, {}}, {id + 1, {}}};
    std::string content = std::string(4096, '\0');
    std::vector<std::vector<Continuation>> continued;
    std::vector<std::string> opened;
    std::set<Address> breakpoints;
    HardwareBreakpoints hardware;
    CaughtCalls caught;
    bool catches_forks = false, catches_vforks = false;
    bool started = false;
    int interrupted = 0, interrupted_with = -1;
    int killed = 0;
    int detached = 0;
    int gathered = 0;
    bool delays = false;  // reads wait for continue_reads()
    std::coroutine_handle<> waiting = nullptr;

    int prepared = 0;
    bool can_be_debugged = true;

    explicit FakeDebuggee(pid_t pid = its_pid) : id(pid) {
        for (auto& [tid, registers] : state) {
            registers.general.rip = 0x400000 + static_cast<unsigned>(tid);
            registers.extended.resize(
                std::max<size_t>(ExtendedStateLayout::of_this_processor().size, 576));
        }
    }

    DebuggeeMemory& memory() override { return *this; }
    DebuggeeTraps& traps() override { return *this; }
    [[nodiscard]] pid_t pid() const override { return id; }
    Task<bool> prepare() override {
        prepared++;
        co_return can_be_debugged;
    }
    [[nodiscard]] bool was_started() const override { return started; }
    bool set_hardware(const HardwareBreakpoint& one, bool there) override {
        if (there) return hardware.add(one);
        hardware.remove(one);
        return true;
    }
    void catch_calls(CaughtCalls calls) override { caught = std::move(calls); }
    void catch_forks(bool forks, bool vforks) override {
        catches_forks = forks;
        catches_vforks = vforks;
    }
    [[nodiscard]] std::vector<pid_t> threads() const override {
        std::vector<pid_t> tids;
        for (const auto& [tid, registers] : state) tids.push_back(tid);
        return tids;
    }
    [[nodiscard]] std::string place_of(pid_t tid) const override {
        return tid == id ? "at home" : "at <10.0.0.7>";
    }
    [[nodiscard]] std::optional<Registers> registers(pid_t tid) const override {
        auto found = state.find(tid);
        return found == state.end() ? std::nullopt : std::optional(found->second);
    }
    bool set_registers(pid_t tid, const Registers& registers) override {
        if (!state.contains(tid)) return false;
        state[tid] = registers;
        return true;
    }
    [[nodiscard]] std::optional<siginfo_t> signal_info(pid_t tid) const override {
        siginfo_t info{};
        info.si_signo = SIGSEGV;
        return tid == id ? std::optional(info) : std::nullopt;
    }

    // Suspends until continue_reads().
    struct Delay {
        FakeDebuggee& owner;
        [[nodiscard]] bool await_ready() const { return !owner.delays; }
        void await_suspend(std::coroutine_handle<> h) { owner.waiting = h; }
        void await_resume() const {}
    };
    void continue_reads() {
        if (waiting) std::exchange(waiting, nullptr).resume();
    }
    Task<size_t> read(Address from, std::span<std::byte> bytes) override {
        Delay delay{*this};
        co_await delay;
        if (from.value < memory_at || from.value >= memory_at + content.size()) co_return 0;
        const size_t at = from.value - memory_at;
        const size_t length = std::min(bytes.size(), content.size() - at);
        std::memcpy(bytes.data(), content.data() + at, length);
        co_return length;
    }
    Task<bool> write(Address to, std::span<const std::byte> bytes) override {
        if (to.value < memory_at || to.value - memory_at > content.size()) co_return false;
        const size_t at = to.value - memory_at;
        if (bytes.size() > content.size() - at) co_return false;
        std::memcpy(content.data() + at, bytes.data(), bytes.size());
        co_return true;
    }
    Task<bool> set_breakpoint(Address at, bool there) override {
        if (at.value < memory_at || at.value >= memory_at + content.size()) co_return false;
        if (there) {
            breakpoints.insert(at);
        } else {
            breakpoints.erase(at);
        }
        co_return true;
    }
    Task<void> gather(bool on) override {
        gathered += on ? 1 : -1;
        co_return;
    }
    Task<std::vector<Range>> content_of(Range mapping, bool) override {
        co_return std::vector<Range>{{mapping.begin, mapping.begin + page_size}};
    }
    [[nodiscard]] std::string auxv() const override { return std::string("#}$*\0a", 6); }
    [[nodiscard]] std::string maps() const override {
        return "1000-2000 rw-p 00000000 00:00 0 [heap]\n";
    }
    [[nodiscard]] std::string executable() const override { return "/bin/fake"; }
    Result<Fd> open_mapped_file(const std::string& path) override {
        opened.push_back(path);
        if (path != "/bin/fake") return fail(ENOENT, "cannot open " + path);
        return Fd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
    }
    void go_on(const std::vector<Continuation>& threads) override { continued.push_back(threads); }
    void interrupt(int signal) override {
        interrupted++;
        interrupted_with = signal;
    }
    void kill() override { killed++; }
    void detach() override { detached++; }
    Task<std::string> command(std::string words) override { co_return "heard " + words + "\n"; }
};

}  // namespace gpr::debug
