#include "acceptor/worker/session_tally.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

namespace gpr {

Result<SharedTally> SharedTally::create() {
    Fd memory(memfd_create("gpr-tally", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    // Sealed, so that neither process can shrink the memory that the other one has mapped.
    if (!memory || ftruncate(memory.get(), sizeof(SessionTally)) != 0 ||
        fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        return fail(errno, "make memory for a session's counts");
    }
    return map(std::move(memory));
}

Result<SharedTally> SharedTally::map(Fd memory) {
    struct stat about {};
    if (fstat(memory.get(), &about) != 0 ||
        about.st_size != static_cast<off_t>(sizeof(SessionTally))) {
        return fail("this is no memory for a session's counts");
    }
    void* mapped =
        mmap(nullptr, sizeof(SessionTally), PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
    if (mapped == MAP_FAILED) return fail(errno, "map a session's counts");
    return SharedTally(std::move(memory), static_cast<SessionTally*>(mapped));
}

SharedTally::SharedTally(SharedTally&& other) noexcept
    : memory_(std::move(other.memory_)), tally_(std::exchange(other.tally_, nullptr)) {}

SharedTally& SharedTally::operator=(SharedTally&& other) noexcept {
    memory_ = std::move(other.memory_);
    std::swap(tally_, other.tally_);
    return *this;
}

SharedTally::~SharedTally() {
    if (tally_) munmap(tally_, sizeof(SessionTally));
}

}  // namespace gpr
