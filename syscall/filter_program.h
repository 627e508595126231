// Assembles a classic BPF program backwards, so that every jump target is known when the jump is
// written. Private to the filter builder.
//
// libseccomp is not used: its rules can neither compare the instruction pointer nor share one
// argument test between many calls; and a tree over intervals of numbers keeps the path of every
// call to about ten instructions.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace gpr {

// Where struct seccomp_data has the low half of an argument: the machine is little-endian.
constexpr uint32_t low_half_of(size_t argument) {
    return static_cast<uint32_t>(offsetof(seccomp_data, args) + argument * 8);
}

class FilterProgram {
public:
    // A position in the program, counted from its end.
    using Label = size_t;

    Label ret(uint32_t action);
    // Loads a 32-bit word of struct seccomp_data and continues at `next`.
    Label load(uint32_t offset, Label next);
    Label mask(uint32_t bits, Label next);
    // `condition` is BPF_JEQ, BPF_JGE, BPF_JGT or BPF_JSET.
    Label branch(uint16_t condition, uint32_t value, Label yes, Label no);

    // By an argument's low half, masked: the kernel looks at no more of most.
    Label by_argument(size_t argument, uint32_t bits, uint32_t value, Label yes, Label no);
    // By who makes the call: the stub, whose addresses have this word in the upper half, or the
    // program.
    Label by_caller(uint32_t stub_word, Label stub, Label program);
    // By the call's number. otherwise: for numbers without an action.
    Label by_number(const std::map<uint32_t, Label>& actions, Label otherwise);
    // By the architecture whose call it is; every program begins so.
    Label by_architecture(Label x86_64, Label foreign);

    // The program; its first instruction is the one written last.
    [[nodiscard]] std::vector<sock_filter> finish() const;

private:
    // From a number on, up to where the next one begins.
    struct Interval {
        uint32_t first;
        Label action;
    };
    Label tree(std::span<const Interval> intervals);
    Label push(sock_filter instruction);
    // Makes `next` the instruction that follows.
    void continue_at(Label next);
    // A label within reach of a conditional jump (8 bits) that is written soon.
    Label near(Label label);

    std::vector<sock_filter> reversed_;
};

}  // namespace gpr
