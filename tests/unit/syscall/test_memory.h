// Program memory for tests: pages that are resident, mapped elsewhere, or not there.
#pragma once

#include <map>
#include <vector>

#include "syscall/marshal.h"

namespace gpr {

class TestMemory : public MemoryReader {
public:
    enum class State { resident, missing, read_only };

    void map(Address begin, uint64_t bytes, State state = State::resident);
    void set_state(Address page, State state) { pages_.at(page.page().value).state = state; }
    void make_resident(const std::vector<PageNeed>& needs);
    void write(Address to, const void* from, size_t bytes);
    void write(Address to, const char* text);
    template <class T>
    void put(Address to, const T& value) {
        write(to, &value, sizeof value);
    }
    template <class T>
    T get(Address from) {
        T value;
        copy_out(from, &value, sizeof value);
        return value;
    }
    void apply(const Scattered& scattered);

    ReadOutcome read(Address from, void* to, size_t bytes) override;
    bool writable(Range range) override;

private:
    struct Page {
        State state = State::resident;
        std::vector<std::byte> bytes;
    };
    std::byte& at(uint64_t address);
    void copy_out(Address from, void* to, size_t bytes);

    std::map<uint64_t, Page> pages_;
};

// The test process itself as the program.
class OwnMemory : public MemoryReader {
public:
    ReadOutcome read(Address from, void* to, size_t bytes) override;
};

}  // namespace gpr
