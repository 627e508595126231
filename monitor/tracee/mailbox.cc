#include "monitor/tracee/mailbox.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>

#include "stub_image.h"

namespace gpr {

namespace {

constexpr uint64_t least_slots = 16;

// In bytes.
uint64_t own_limit(__rlimit_resource_t resource) {
    rlimit limit{};
    return getrlimit(resource, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

uint64_t slots_within(uint64_t most) {
    const uint64_t bytes =
        std::min({Mailbox::part_of(own_limit(RLIMIT_AS)), own_limit(RLIMIT_FSIZE), most});
    return std::clamp(bytes / GPR_SLOT_STRIDE, least_slots, GPR_SLOT_COUNT);
}

}  // namespace

Result<std::unique_ptr<Mailbox>> Mailbox::create(uint64_t most) {
    Fd fd(memfd_create("gpr-mailbox", MFD_CLOEXEC));
    if (!fd) return fail(errno, "cannot create a mailbox memfd");
    return create(std::move(fd), nullptr, most);
}

Result<std::unique_ptr<Mailbox>> Mailbox::create(Loop& loop, Fd memfd, uint64_t most) {
    return create(std::move(memfd), &loop, most);
}

Result<std::unique_ptr<Mailbox>> Mailbox::create(Fd fd, Loop* loop, uint64_t most) {
    std::unique_ptr<Mailbox> made(new Mailbox(std::move(fd), slots_within(most), loop));
    int memfd = made->memfd();
    auto size = static_cast<off_t>(made->size());
    if (ftruncate(memfd, size) != 0) {
        return fail(errno, errno != EFBIG ? "cannot size a mailbox"
                                          : "the limit on file sizes (ulimit -f) is too low for "
                                            "gpr's own memory; lower the soft limit only: "
                                            "ulimit -Sf");
    }
    void* base =
        mmap(nullptr, made->size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, memfd, 0);
    if (base == MAP_FAILED) return fail(errno, "cannot map a mailbox");
    made->base_ = static_cast<std::byte*>(base);
    return made;
}

Mailbox::~Mailbox() {
    if (base_) munmap(base_, size());
}

Result<Mailbox::SlotIndex> Mailbox::allocate() {
    SlotIndex index = next_;
    if (!free_.empty()) {
        index = free_.back();
        free_.pop_back();
    } else if (next_ == slots_) {
        auto why = slots_ < GPR_SLOT_COUNT ? ", because of RLIMIT_AS" : "";
        return fail(EAGAIN, fmt::format("a process may have {} threads under gpr{}", slots_, why));
    } else {
        next_++;
    }
    if (loop_) slot(index).put(offsetof(gpr_slot, by_futex), uint32_t{1});
    return index;
}

void Mailbox::release(SlotIndex index) {
    slot(index).clear();
    free_.push_back(index);
}

HostileMemory Mailbox::slot(SlotIndex index) const { return {at(index), sizeof(gpr_slot)}; }

HostileMemory Mailbox::frame(SlotIndex index) const {
    return {at(index) + GPR_SLOT_FRAME, GPR_SLOT_SIZE - GPR_SLOT_FRAME};
}

HostileMemory Mailbox::bounce(SlotIndex index) const {
    return {at(index) + GPR_SLOT_SIZE, GPR_BOUNCE_SIZE};
}

Result<Mailbox::SlotIndex> Mailbox::index_of(Address slot) {
    uint64_t offset = slot.value - GPR_MAILBOX;
    if (slot.value < GPR_MAILBOX || offset % GPR_SLOT_STRIDE != 0 ||
        offset / GPR_SLOT_STRIDE >= GPR_SLOT_COUNT) {
        return fail(EINVAL, "a parked thread named no slot");
    }
    return static_cast<SlotIndex>(offset / GPR_SLOT_STRIDE);
}

void Mailbox::prepare_birth(SlotIndex index) {
    uint64_t address = slot_address(index).value;
    std::memcpy(at(index) + GPR_SLOT_STACK_TOP - 8, &address, 8);
}

Result<Fd> Mailbox::create_code_memfd() {
    Fd fd(memfd_create("gpr-stub", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!fd) return fail(errno, "cannot create the stub memfd");
    GPR_CHECK(write_code(fd.get()));
    return fd;
}

Result<> Mailbox::write_code(int memfd) {
    auto size = static_cast<ssize_t>(stub_image_size);
    if (::write(memfd, stub_image, stub_image_size) != size) {
        return fail(errno, "cannot write the stub");
    }
    if (ftruncate(memfd, page_size) != 0) return fail(errno, "cannot size the stub");
    fcntl(memfd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    return {};
}

}  // namespace gpr
