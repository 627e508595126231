// Writes to a descriptor that may block, for a process that must not: the program may hold the lock
// of its own pipe or terminal while it waits for us.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace gpr {

// From the first text on, a separate process does the writing; it is a grandchild, which the caller
// need not wait for. What it cannot write in time is dropped, and the number of dropped lines is
// written later. It ends with its SideWriter, and when a single write takes more than five seconds.
class SideWriter {
public:
    explicit SideWriter(Fd to);
    SideWriter(const SideWriter&) = delete;
    SideWriter& operator=(const SideWriter&) = delete;
    ~SideWriter();

    // Writes the text as it is.
    void write(std::string_view text);
    // For a terminal: tells what is in progress. A line says so if it takes more than two seconds,
    // and again after four, eight and so on. The newest text replaces older ones; "" means that it
    // is done.
    void doing(std::string_view what);
    // True: it writes to a terminal that no full-screen program uses.
    [[nodiscard]] bool has_terminal() const { return has_terminal_; }
    // Waits, for a short time at most, until everything is written.
    void flush();
    [[nodiscard]] int fd() const { return to_.get(); }

private:
    enum class Kind : char { text, doing };
    bool start();
    void send(Kind kind, std::string_view text);
    void take_acknowledgements();

    Fd to_;
    bool has_terminal_;
    Fd channel_;
    uint64_t unwritten_ = 0;
    uint64_t dropped_ = 0;
};

}  // namespace gpr
