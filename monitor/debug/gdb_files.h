// The vFile packets, by which gdb reads the program, its libraries and, for "info proc", files of
// /proc through the server. gdb's manual, "Host I/O Packets".
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "monitor/debug/gdb_processes.h"

namespace gpr::debug {

class GdbFiles {
public:
    explicit GdbFiles(const GdbProcesses& processes) : processes_(processes) {}

    // operation: what follows "vFile:". Returns an empty string for an unknown one.
    [[nodiscard]] std::string answer(std::string_view operation);

private:
    struct File {
        Fd fd;
        std::string content;  // if there is no fd
    };

    [[nodiscard]] std::string open(std::string_view arguments);
    [[nodiscard]] std::string read(std::string_view arguments) const;
    [[nodiscard]] std::string describe(std::string_view arguments) const;
    [[nodiscard]] std::string close(std::string_view arguments);
    [[nodiscard]] std::string read_link(std::string_view arguments) const;
    [[nodiscard]] const File* find(std::string_view number) const;
    // Whose folder in /proc the path is in; null if it is elsewhere. What follows /proc/PID/
    // remains.
    [[nodiscard]] const GdbProcesses::One* take_folder(std::string_view& path) const;
    [[nodiscard]] Result<Fd> open_mapped(const std::string& path) const;

    const GdbProcesses& processes_;
    std::map<uint64_t, File> files_;
};

}  // namespace gpr::debug
