#include "syscall/filter_program.h"

#include <linux/audit.h>

#include "base/result.h"

namespace gpr {
namespace {

// Less than 255, because a branch may write two trampolines first.
constexpr size_t reach = 250;

}  // namespace

FilterProgram::Label FilterProgram::push(sock_filter instruction) {
    reversed_.push_back(instruction);
    return reversed_.size();
}

FilterProgram::Label FilterProgram::ret(uint32_t action) {
    return push(BPF_STMT(BPF_RET | BPF_K, action));
}

void FilterProgram::continue_at(Label next) {
    if (next == reversed_.size()) return;
    push(BPF_STMT(BPF_JMP | BPF_JA, static_cast<uint32_t>(reversed_.size() - next)));
}

FilterProgram::Label FilterProgram::near(Label label) {
    if (reversed_.size() - label < reach) return label;
    const sock_filter target = reversed_[label - 1];
    if (target.code == (BPF_RET | BPF_K)) return push(target);
    return push(BPF_STMT(BPF_JMP | BPF_JA, static_cast<uint32_t>(reversed_.size() - label)));
}

FilterProgram::Label FilterProgram::load(uint32_t offset, Label next) {
    continue_at(next);
    return push(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset));
}

FilterProgram::Label FilterProgram::mask(uint32_t bits, Label next) {
    continue_at(next);
    return push(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, bits));
}

FilterProgram::Label FilterProgram::branch(uint16_t condition, uint32_t value, Label yes,
                                           Label no) {
    if (yes == no) {
        continue_at(yes);
        return yes;
    }
    yes = near(yes);
    no = near(no);
    size_t here = reversed_.size();
    GPR_ASSERT(here - yes <= 255 && here - no <= 255);
    return push(BPF_JUMP(static_cast<uint16_t>(BPF_JMP | BPF_K | condition), value,
                         static_cast<uint8_t>(here - yes), static_cast<uint8_t>(here - no)));
}

FilterProgram::Label FilterProgram::by_argument(size_t argument, uint32_t bits, uint32_t value,
                                                Label yes, Label no) {
    Label test = branch(BPF_JEQ, value, yes, no);
    if (bits != UINT32_MAX) test = mask(bits, test);
    return load(low_half_of(argument), test);
}

FilterProgram::Label FilterProgram::by_caller(uint32_t stub_word, Label stub, Label program) {
    constexpr uint32_t rip_high_half = offsetof(seccomp_data, instruction_pointer) + 4;
    return load(rip_high_half, branch(BPF_JEQ, stub_word, stub, program));
}

FilterProgram::Label FilterProgram::by_number(const std::map<uint32_t, Label>& actions,
                                              Label otherwise) {
    std::vector<Interval> intervals{{0, otherwise}};
    auto add = [&](uint32_t first, Label action) {
        if (intervals.back().first == first) intervals.pop_back();
        if (!intervals.empty() && intervals.back().action == action) return;
        intervals.push_back({first, action});
    };
    for (const auto& [number, action] : actions) {
        add(number, action);
        if (number != UINT32_MAX) add(number + 1, otherwise);
    }
    return load(offsetof(seccomp_data, nr), tree(intervals));
}

FilterProgram::Label FilterProgram::tree(std::span<const Interval> intervals) {
    if (intervals.size() == 1) return intervals.front().action;
    size_t middle = intervals.size() / 2;
    Label high = tree(intervals.subspan(middle));
    Label low = tree(intervals.first(middle));
    return branch(BPF_JGE, intervals[middle].first, high, low);
}

FilterProgram::Label FilterProgram::by_architecture(Label x86_64, Label foreign) {
    return load(offsetof(seccomp_data, arch), branch(BPF_JEQ, AUDIT_ARCH_X86_64, x86_64, foreign));
}

std::vector<sock_filter> FilterProgram::finish() const {
    return {reversed_.rbegin(), reversed_.rend()};
}

}  // namespace gpr
