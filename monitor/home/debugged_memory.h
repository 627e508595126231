// Memory and files of a process of the session as its debugger sees them.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <memory>
#include <string>

#include "monitor/debug/breakpoints.h"
#include "monitor/debug/debuggee.h"
#include "monitor/home/part.h"

namespace gpr::home {

class DebuggedMemory : public debug::DebuggeeMemory,
                       public std::enable_shared_from_this<DebuggedMemory> {
public:
    // breakpoints: those that a child has inherited from its parent.
    DebuggedMemory(Home& home, pid_t pid, debug::Breakpoints breakpoints)
        : home_(home), pid_(pid), breakpoints_(std::move(breakpoints)) {}

    [[nodiscard]] const debug::Breakpoints& breakpoints() const { return breakpoints_; }

    Task<size_t> read(Address from, std::span<std::byte> bytes) override;
    Task<bool> write(Address to, std::span<const std::byte> bytes) override;
    Task<bool> set_breakpoint(Address at, bool there) override;
    Task<void> gather(bool on) override;
    Task<std::vector<Range>> content_of(Range mapping, bool has_no_name) override;
    [[nodiscard]] std::string auxv() const override;
    [[nodiscard]] std::string maps() const override;
    [[nodiscard]] std::string executable() const override;
    Result<Fd> open_mapped_file(const std::string& path) override;

private:
    [[nodiscard]] HomeProcess* process() const;
    Task<bool> write_raw(Address to, std::span<const std::byte> bytes);
    [[nodiscard]] bool is_mapped(const struct stat& about, const Fd& file) const;

    Home& home_;
    const pid_t pid_;
    debug::Breakpoints breakpoints_;
    std::shared_ptr<Fragment> gathered_;
};

}  // namespace gpr::home
