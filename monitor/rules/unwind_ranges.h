// Where the functions of an ELF file begin and end, those without symbols too: every function that
// exceptions can pass has an entry in .eh_frame, which no tool strips.
#pragma once

#include <gelf.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace gpr {

class UnwindRanges {
public:
    explicit UnwindRanges(Elf* elf);

    struct Span {
        uint64_t begin = 0, end = 0;  // addresses of the file
    };
    // The function that this address is part of.
    [[nodiscard]] std::optional<Span> find(uint64_t address) const;

private:
    std::vector<Span> spans_;  // in order
};

}  // namespace gpr
