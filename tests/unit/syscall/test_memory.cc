#include "test_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "base/fd.h"

namespace gpr {

void TestMemory::map(Address begin, uint64_t bytes, State state) {
    for (uint64_t page = begin.page().value; page < (begin + bytes).value; page += page_size) {
        pages_[page] = {state, std::vector<std::byte>(page_size)};
    }
}

void TestMemory::make_resident(const std::vector<PageNeed>& needs) {
    for (const PageNeed& need : needs) {
        for (uint64_t page = need.range.begin.page().value; page < need.range.end.value;
             page += page_size) {
            pages_.at(page).state = State::resident;
        }
    }
}

std::byte& TestMemory::at(uint64_t address) {
    return pages_.at(address & page_mask).bytes[address & ~page_mask];
}

void TestMemory::write(Address to, const void* from, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) at(to.value + i) = static_cast<const std::byte*>(from)[i];
}

void TestMemory::write(Address to, const char* text) { write(to, text, std::strlen(text) + 1); }

void TestMemory::copy_out(Address from, void* to, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) static_cast<std::byte*>(to)[i] = at(from.value + i);
}

void TestMemory::apply(const Scattered& scattered) {
    for (const MemoryWrite& w : scattered.writes) write(w.to, w.bytes.data(), w.bytes.size());
}

ReadOutcome TestMemory::read(Address from, void* to, size_t bytes) {
    auto outcome = ReadOutcome::done;
    for (uint64_t page = from.page().value; page < from.value + bytes; page += page_size) {
        auto found = pages_.find(page);
        if (found == pages_.end()) return ReadOutcome::unmapped;
        if (found->second.state == State::missing) outcome = ReadOutcome::missing;
    }
    if (outcome == ReadOutcome::done) copy_out(from, to, bytes);
    return outcome;
}

bool TestMemory::writable(Range range) {
    for (uint64_t page = range.begin.page().value; page < range.end.value; page += page_size) {
        auto found = pages_.find(page);
        if (found == pages_.end() || found->second.state == State::read_only) return false;
    }
    return true;
}

ReadOutcome OwnMemory::read(Address from, void* to, size_t bytes) {
    Fd memory(open("/proc/self/mem", O_RDONLY | O_CLOEXEC));
    auto copied = pread(memory.get(), to, bytes, static_cast<off_t>(from.value));
    return copied == static_cast<ssize_t>(bytes) ? ReadOutcome::done : ReadOutcome::unmapped;
}

}  // namespace gpr
