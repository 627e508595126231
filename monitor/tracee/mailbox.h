// The memory that a supervisor shares with the stubs of one process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/address.h"
#include "base/fd.h"
#include "base/hostile_memory.h"
#include "base/result.h"
#include "stub/layout.h"

namespace gpr {

class Loop;

class Mailbox {
public:
    using SlotIndex = uint32_t;

    static constexpr uint64_t largest = GPR_SLOT_STRIDE * GPR_SLOT_COUNT;  // bytes
    // Of an address space with this limit, the part that a mailbox may be.
    static constexpr uint64_t part_of(uint64_t limit) { return limit / 16; }

    // With the largest number of slots, or fewer where RLIMIT_FSIZE, our own RLIMIT_AS, or `most`
    // bytes allow no more. Its threads park in a call that a seccomp filter reports.
    static Result<std::unique_ptr<Mailbox>> create(uint64_t most = largest);
    // For threads without such a filter, which park on a futex that the loop watches. memfd: an
    // empty one, of the program's or ours.
    static Result<std::unique_ptr<Mailbox>> create(Loop& loop, Fd memfd, uint64_t most = largest);
    ~Mailbox();
    Mailbox(const Mailbox&) = delete;
    Mailbox& operator=(const Mailbox&) = delete;

    // Null: its threads park in the reserved call.
    [[nodiscard]] Loop* parking_loop() const { return loop_; }
    [[nodiscard]] int memfd() const { return memfd_.get(); }
    [[nodiscard]] uint64_t size() const { return GPR_SLOT_STRIDE * slots_; }  // bytes

    Result<SlotIndex> allocate();
    void release(SlotIndex index);

    // Any thread of the program may write to these.
    [[nodiscard]] HostileMemory slot(SlotIndex index) const;  // a gpr_slot
    [[nodiscard]] HostileMemory frame(SlotIndex index) const;
    [[nodiscard]] HostileMemory bounce(SlotIndex index) const;

    // A futex in the gpr_slot.
    [[nodiscard]] const uint32_t* word(SlotIndex index, size_t offset) const {
        return reinterpret_cast<const uint32_t*>(at(index) + offset);
    }

    [[nodiscard]] static Address slot_address(SlotIndex index) {
        return {GPR_MAILBOX + GPR_SLOT_STRIDE * index};
    }
    [[nodiscard]] static Address bounce_address(SlotIndex index) {
        return slot_address(index) + GPR_SLOT_SIZE;
    }
    // The initial stack pointer of a stub thread. Its top word holds the slot address for threads
    // born by clone.
    [[nodiscard]] static Address stack_top(SlotIndex index) {
        return slot_address(index) + GPR_SLOT_STACK_TOP;
    }
    static Result<SlotIndex> index_of(Address slot);
    void prepare_birth(SlotIndex index);

    // The stub's code, sealed; all processes share it.
    static Result<Fd> create_code_memfd();
    // The same in an empty memfd.
    static Result<> write_code(int memfd);

private:
    Mailbox(Fd memfd, uint64_t slots, Loop* loop)
        : loop_(loop), memfd_(std::move(memfd)), slots_(slots) {}
    static Result<std::unique_ptr<Mailbox>> create(Fd memfd, Loop* loop, uint64_t most);
    [[nodiscard]] std::byte* at(SlotIndex index) const { return base_ + GPR_SLOT_STRIDE * index; }

    Loop* loop_;
    Fd memfd_;
    uint64_t slots_;
    std::byte* base_ = nullptr;
    std::vector<SlotIndex> free_;
    SlotIndex next_ = 0;
};

// The part of an area that an argument points to; empty if it points elsewhere. begin: the area's
// address in the program.
inline HostileMemory bytes_in(Address begin, HostileMemory area, uint64_t at, size_t size) {
    bool inside =
        at >= begin.value && size <= area.size() && at - begin.value <= area.size() - size;
    return inside ? area.part(at - begin.value, size) : HostileMemory();
}

}  // namespace gpr
