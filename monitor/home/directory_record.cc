#include "monitor/home/directory_record.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"

namespace gpr {

namespace {
// Enough for about a million faults; then the oldest are overwritten.
constexpr size_t record_bytes = 64 << 20;
}  // namespace

Result<std::unique_ptr<DirectoryRecord>> DirectoryRecord::create(const std::string& path,
                                                                 uint64_t seed) {
    Fd file(open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!file) return fail(errno, "cannot record to " + path);
    // Allocated now, because a full disk would later raise SIGBUS.
    if (int error = posix_fallocate(file.get(), 0, record_bytes); error != 0) {
        return fail(error, "no room for a record in " + path);
    }
    void* memory = mmap(nullptr, record_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (memory == MAP_FAILED) return fail(errno, "cannot map " + path);
    return std::unique_ptr<DirectoryRecord>(new DirectoryRecord(
        std::move(file), {static_cast<std::byte*>(memory), record_bytes}, seed));
}

DirectoryRecord::~DirectoryRecord() {
    munmap(memory_.data(), memory_.size());
    if (ftruncate(file_.get(), static_cast<off_t>(log_.extent())) != 0) {
        spdlog::warn("cannot shorten the record: {}", std::strerror(errno));
    }
}

}  // namespace gpr
