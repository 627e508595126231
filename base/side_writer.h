// Writes for a process that must never block, to a descriptor that may: the program may hold the
// lock of its own pipe or terminal while it waits for us.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace gpr {

// A process of its own does the writing, from the first text on; it is nobody's child that the
// caller might wait for. What it cannot keep up with is dropped, and how much that was is told. It
// ends when its SideWriter is gone, and where a single write takes more than five seconds.
class SideWriter {
public:
    explicit SideWriter(Fd to);
    SideWriter(const SideWriter&) = delete;
    SideWriter& operator=(const SideWriter&) = delete;
    ~SideWriter();

    // Written as it is.
    void write(std::string_view text);
    // What goes on, for a terminal: a line tells it if it takes more than two seconds, and again
    // after four, eight and so on. The newest text replaces the others; "" means that it is done.
    void doing(std::string_view what);
    // Somebody would see it: a terminal that no full-screen program uses.
    [[nodiscard]] bool has_terminal() const { return has_terminal_; }
    // Until all is written; not for long.
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
