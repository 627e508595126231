// Files of /proc that show the process itself. What the kernel at home would tell is about gpr, or
// about memory that is elsewhere; so whoever opens one gets a text of ours in its place, as it is
// at that moment.
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
