#include "base/own_limits.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <csignal>

namespace gpr {
namespace {

// Raises the soft limit, and the hard limit if permitted. Returns the resulting limit.
rlim_t lift(__rlimit_resource_t resource, rlim_t wanted) {
    rlimit limit{};
    getrlimit(resource, &limit);
    if (limit.rlim_max < wanted) {
        const rlimit higher{wanted, wanted};
        if (setrlimit(resource, &higher) == 0) return wanted;
    }
    limit.rlim_cur = limit.rlim_max;
    setrlimit(resource, &limit);
    return limit.rlim_cur;
}

}  // namespace

Result<> lift_own_limits(uint64_t least_open_files) {
    // Writing beyond the limit must be an error to report, and not kill this process.
    if (lift(RLIMIT_FSIZE, RLIM_INFINITY) != RLIM_INFINITY) signal(SIGXFSZ, SIG_IGN);
    const rlim_t files = lift(RLIMIT_NOFILE, least_open_files);
    if (files >= least_open_files) return {};
    return fail(
        fmt::format("{} open files are allowed here (ulimit -n), and gpr needs {} for "
                    "itself; lower the soft limit only: ulimit -Sn {}",
                    files, least_open_files, files));
}

}  // namespace gpr
