#include "acceptor/worker/session_tally.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <utility>

namespace gpr {

namespace {

using Numbers = std::array<uint64_t, sizeof(SessionTally) / sizeof(uint64_t)>;

}  // namespace

SessionTally& SessionTally::operator+=(const SessionTally& other) {
    auto sums = std::bit_cast<Numbers>(*this);
    const auto added = std::bit_cast<Numbers>(other);
    for (size_t i = 0; i < sums.size(); i++) sums[i] += added[i];
    return *this = std::bit_cast<SessionTally>(sums);
}

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
    return SharedTally(std::move(memory), static_cast<Words*>(mapped));
}

void SharedTally::write(const SessionTally& tally) {
    const auto values = std::bit_cast<Numbers>(tally);
    for (size_t i = 0; i < values.size(); i++) {
        (*words_)[i].store(values[i], std::memory_order_relaxed);
    }
}

SessionTally SharedTally::read() const {
    Numbers values{};
    for (size_t i = 0; i < values.size(); i++) {
        values[i] = (*words_)[i].load(std::memory_order_relaxed);
    }
    return std::bit_cast<SessionTally>(values);
}

SharedTally::SharedTally(SharedTally&& other) noexcept
    : memory_(std::move(other.memory_)), words_(std::exchange(other.words_, nullptr)) {}

SharedTally& SharedTally::operator=(SharedTally&& other) noexcept {
    memory_ = std::move(other.memory_);
    std::swap(words_, other.words_);
    return *this;
}

SharedTally::~SharedTally() {
    if (words_) munmap(words_, sizeof(SessionTally));
}

}  // namespace gpr
