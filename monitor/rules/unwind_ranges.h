// Where the functions of an ELF file begin and end, even those without symbols: every function that
// exceptions can pass through has an entry in .eh_frame, which strip does not remove.
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
        uint64_t begin = 0, end = 0;  // addresses in the file's image
    };
    // The function that contains this address.
    [[nodiscard]] std::optional<Span> find(uint64_t address) const;

private:
    std::vector<Span> spans_;  // sorted
};

}  // namespace gpr
