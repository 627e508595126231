// Assembles a classic BPF program backwards, so that every jump target is known when the jump is
// written. Private to the filter builder.
//
// libseccomp is not used: its rules can neither compare the instruction pointer nor share one
// argument test between many calls; and a tree over intervals of numbers keeps the path of every
// call to about ten instructions.
#pragma once

#include <linux/filter.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpr {

class FilterProgram {
public:
    // A position in the program, counted from its end.
    using Label = size_t;

    Label ret(uint32_t action);
    // Loads a 32-bit word of struct seccomp_data and continues at `next`.
    Label load(uint32_t offset, Label next);
    Label mask(uint32_t bits, Label next);
    // `condition` is BPF_JEQ, BPF_JGE or BPF_JGT.
    Label branch(uint16_t condition, uint32_t value, Label yes, Label no);

    // The program; its first instruction is the one written last.
    [[nodiscard]] std::vector<sock_filter> finish() const;

private:
    Label push(sock_filter instruction);
    // Makes `next` the instruction that follows.
    void continue_at(Label next);
    // A label within reach of a conditional jump (8 bits) that is written soon.
    Label near(Label label);

    std::vector<sock_filter> reversed_;
};

}  // namespace gpr
