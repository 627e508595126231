// Which processes would notice that home opens or reads a file that they themselves have not: those
// that watch files, or have a lease on one. Who is split is asked by its calls; but a process may
// have begun with that while it was at rest.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>

namespace gpr::home {

class FileWatchers {
public:
    enum class Verdict : uint8_t { none, some, unknown };
    // From its descriptors, which are looked at once.
    Verdict of(pid_t pid);
    // The process rests, or has ended.
    void forget(pid_t pid) { known_.erase(pid); }

private:
    std::map<pid_t, Verdict> known_;
};

}  // namespace gpr::home
