// Files of /proc that describe a process. Home's kernel would describe gpr's part of it, and miss
// memory that is elsewhere. So a program that opens one gets a file with our text instead, made at
// that moment.
#pragma once

#include <string>

#include "monitor/home/mapping_queries.h"
#include "monitor/home/part.h"

namespace gpr {
struct ProcFile;
}  // namespace gpr

namespace gpr::home {

class ProcFiles {
public:
    explicit ProcFiles(Home& home) : queries(home), home_(home) {}

    MappingQueries queries;

    Task<void> show_process(HomeProcess& process, StubThread& stub, int fd, ProcFile file);
    Task<void> open_call(HomeProcess& process, HomeThread& thread, Notification n);
    static bool has_opened(const HomeThread& thread);
    Task<void> show_opened(HomeThread& thread);

private:
    Task<std::string> shown_arguments(HomeProcess& process, const std::string& path);
    Task<std::string> shown_numbers(HomeProcess& process, ProcFile file, std::string path);

    Home& home_;
};

}  // namespace gpr::home
