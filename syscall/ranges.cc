// What a raw call will touch, so that its pages can be requested before it runs.
#include <algorithm>
#include <optional>

#include "syscall/marshal.h"
#include "syscall/table.h"

namespace gpr {
namespace {

// Requesting more in advance would cost more than the faults that it saves.
constexpr uint64_t range_limit = 64ull << 20;

class RangeFinder {
public:
    RangeFinder(const SyscallArguments& args, MemoryReader* memory)
        : args_(args), memory_(memory) {}

    void add(uint64_t at, uint64_t bytes, Direction direction) {
        if (at == 0 || bytes == 0 || at >= user_space_end) return;
        bytes = std::min({bytes, range_limit, user_space_end - at});
        ranges.push_back({{{at}, {at + bytes}}, direction != Direction::in});
    }

    void add_argument(const Argument& shape, size_t index) {
        uint64_t at = args_[index];
        switch (shape.kind) {
            case Kind::buffer: return add(at, extent(shape), shape.direction);
            case Kind::iovec: return add_iovec(at, args_[shape.index], shape.direction);
            case Kind::msghdr: return add_msghdr(at, shape.direction);
            case Kind::sigmask_pair: return add(at, 16, Direction::in);
            // Of unknown length: only the beginning is certain.
            case Kind::string:
            case Kind::strings:
            case Kind::raw: return add(at, 1, Direction::in);
            default: return;
        }
    }

    std::vector<PageNeed> ranges;

private:
    uint64_t extent(const Argument& shape) {
        uint64_t count = args_[shape.index];
        if (shape.narrow) count = static_cast<uint32_t>(count);
        count = std::min(count, range_limit);
        switch (shape.extent) {
            case Extent::fixed: return shape.unit;
            case Extent::counted: return count * shape.unit + shape.extra;
            case Extent::bits: return (count + 63) / 64 * 8;
            case Extent::valued: return peek<uint32_t>(args_[shape.index]).value_or(1);
        }
        return 0;
    }

    template <class T>
    std::optional<T> peek(uint64_t at) {
        T value;
        if (memory_ == nullptr || at == 0 || at >= user_space_end) return std::nullopt;
        if (memory_->read({at}, &value, sizeof value) != ReadOutcome::done) return std::nullopt;
        return value;
    }

    void add_iovec(uint64_t at, uint64_t count, Direction direction) {
        count = std::min<uint64_t>(count, 1024);
        add(at, count * 16, Direction::in);
        for (uint64_t i = 0; i < count; ++i) {
            auto base = peek<uint64_t>(at + i * 16);
            auto length = peek<uint64_t>(at + i * 16 + 8);
            if (!base || !length) return;
            add(*base, *length, direction);
        }
    }

    void add_msghdr(uint64_t at, Direction direction) {
        add(at, 56, direction == Direction::in ? Direction::in : Direction::inout);
        auto name = peek<uint64_t>(at);
        auto name_length = peek<uint32_t>(at + 8);
        auto control = peek<uint64_t>(at + 32);
        auto control_length = peek<uint64_t>(at + 40);
        if (!name || !name_length || !control || !control_length) return;
        add(*name, *name_length, direction);
        add(*control, *control_length, direction);
        add_iovec(peek<uint64_t>(at + 16).value_or(0), peek<uint64_t>(at + 24).value_or(0),
                  direction);
    }

    const SyscallArguments& args_;
    MemoryReader* memory_;
};

std::vector<Range> pick(uint32_t number, const SyscallArguments& args, MemoryReader* memory,
                        bool write) {
    std::vector<Range> picked;
    for (const PageNeed& need : raw_ranges(number, args, memory)) {
        if (need.write == write) picked.push_back(need.range);
    }
    return picked;
}

}  // namespace

std::vector<PageNeed> raw_ranges(uint32_t number, const SyscallArguments& args,
                                 MemoryReader* memory) {
    RangeFinder finder(args, memory);
    for (size_t i = 0; i < args.size(); ++i) {
        finder.add_argument(argument_shape(number, args, i), i);
    }
    return std::move(finder.ranges);
}

std::vector<Range> raw_input_ranges(uint32_t number, const SyscallArguments& args,
                                    MemoryReader* memory) {
    return pick(number, args, memory, false);
}

std::vector<Range> raw_output_ranges(uint32_t number, const SyscallArguments& args,
                                     MemoryReader* memory) {
    return pick(number, args, memory, true);
}

}  // namespace gpr
