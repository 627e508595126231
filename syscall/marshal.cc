#include "syscall/marshal.h"

#include <sys/socket.h>

#include "syscall/layout.h"
#include "syscall/request.h"
#include "syscall/table.h"

namespace gpr {
namespace {

constexpr uint32_t iovec_limit = 1024;  // UIO_MAXIOV
constexpr uint32_t argv_limit = piece_limit;

// struct user_msghdr of the kernel's uapi.
constexpr uint32_t msghdr_size = 56;
constexpr uint32_t msg_name_at = 0, msg_namelen_at = 8, msg_iov_at = 16, msg_iovlen_at = 24;
constexpr uint32_t msg_control_at = 32, msg_controllen_at = 40;

// Clamped, so that the arithmetic below cannot wrap around.
uint64_t scaled(uint64_t count, uint64_t unit, uint64_t extra) {
    if (unit != 0 && count > bounce_limit / unit) return bounce_limit + 1;
    return count * unit + extra;
}

uint64_t count_of(const Argument& shape, const SyscallArguments& args) {
    uint64_t count = args[shape.index];
    return shape.narrow ? static_cast<uint32_t>(count) : count;
}

void add_elements(Layout& layout, uint16_t array, uint64_t count, Direction direction) {
    for (uint32_t i = 0; i < count && !layout.stopped(); ++i) {
        auto base = layout.read<uint64_t>(array, i * 16);
        auto length = layout.read<uint64_t>(array, i * 16 + 8);
        if (length == 0 || base == 0) continue;
        layout.add({array, i * 16}, {base}, length, direction, Returned::share);
    }
}

void add_iovec(Layout& layout, Layout::Slot slot, Address at, uint64_t count, Direction direction) {
    if (at.value == 0 || count == 0) return;
    if (count > iovec_limit) return layout.stay_raw("more iovec elements than IOV_MAX");
    auto array = layout.add(slot, at, count * 16, Direction::in, Returned::nothing);
    if (array && layout.complete(*array)) add_elements(layout, *array, count, direction);
}

// msg_namelen and msg_controllen are value-result, and msg_flags is written on success. So the
// header is sent as `inout`, and only what differs is written back.
void add_msghdr(Layout& layout, Layout::Slot slot, Address at, Direction direction) {
    bool receives = direction == Direction::out;
    auto header = layout.add(slot, at, msghdr_size, receives ? Direction::inout : Direction::in,
                             Returned::success);
    if (!header || !layout.complete(*header)) return;
    auto add_sized = [&](uint32_t pointer_at, uint64_t length, uint32_t length_at) {
        auto pointer = layout.read<uint64_t>(*header, pointer_at);
        if (pointer == 0 || length == 0) return;
        auto index =
            layout.add({*header, pointer_at}, {pointer}, length, direction, Returned::valued);
        if (!index || !receives) return;
        layout.piece(*index).length_piece = *header;
        layout.piece(*index).length_at = length_at;
    };
    add_sized(msg_name_at, layout.read<uint32_t>(*header, msg_namelen_at), msg_namelen_at);
    add_sized(msg_control_at, layout.read<uint64_t>(*header, msg_controllen_at), msg_controllen_at);
    add_iovec(layout, {*header, msg_iov_at}, {layout.read<uint64_t>(*header, msg_iov_at)},
              layout.read<uint64_t>(*header, msg_iovlen_at), direction);
}

void add_sigmask_pair(Layout& layout, Layout::Slot slot, Address at) {
    auto pair = layout.add(slot, at, 16, Direction::in, Returned::nothing);
    if (!pair || !layout.complete(*pair)) return;
    auto set = layout.read<uint64_t>(*pair, 0);
    if (set == 0) return;
    layout.add({*pair, 0}, {set}, 8, Direction::in, Returned::nothing);
}

void add_strings(Layout& layout, Layout::Slot slot, Address at) {
    std::vector<uint64_t> strings;
    for (;;) {
        auto pointer = layout.peek<uint64_t>(at + strings.size() * 8);
        if (!pointer) return;
        if (*pointer == 0) break;
        if (strings.size() == argv_limit) return layout.stay_raw("more strings than pieces");
        strings.push_back(*pointer);
    }
    auto vector = layout.add(slot, at, (strings.size() + 1) * 8, Direction::in, Returned::nothing);
    if (!vector) return;
    for (uint32_t i = 0; i < strings.size() && !layout.stopped(); ++i) {
        layout.add_string({*vector, i * 8}, {strings[i]});
    }
}

// The length that a socklen_t * argument points to is a piece of its own, added with that argument;
// here it only gives the capacity.
void add_valued(Layout& layout, Layout::Slot slot, const Argument& shape) {
    uint64_t length_pointer = layout.args()[shape.index];
    if (length_pointer == 0) return layout.stay_raw("a buffer without its length");
    auto capacity = layout.peek<uint32_t>({length_pointer});
    if (!capacity || *capacity == 0) return;
    if (*capacity > INT32_MAX) return layout.stay_raw("a negative length");
    layout.add(slot, {layout.args()[slot.at]}, *capacity, shape.direction, Returned::valued);
}

void add_buffer(Layout& layout, Layout::Slot slot, const Argument& shape) {
    Address at{layout.args()[slot.at]};
    uint64_t bytes = 0;
    switch (shape.extent) {
        case Extent::fixed: bytes = shape.unit; break;
        case Extent::counted:
            bytes = scaled(count_of(shape, layout.args()), shape.unit, shape.extra);
            break;
        case Extent::bits: bytes = (count_of(shape, layout.args()) + 63) / 64 * 8; break;
        case Extent::valued: return add_valued(layout, slot, shape);
    }
    if (bytes == 0) return;
    auto index = layout.add(slot, at, bytes, shape.direction, shape.returned);
    if (!index) return;
    layout.piece(*index).unit = shape.unit;
    layout.piece(*index).extra = shape.extra;
}

void add_argument(Layout& layout, const Argument& shape, uint32_t index) {
    Address at{layout.args()[index]};
    if (!shape.is_pointer() || shape.kind == Kind::raw || at.value == 0) return;
    Layout::Slot slot{no_piece, index};
    switch (shape.kind) {
        case Kind::buffer: return add_buffer(layout, slot, shape);
        case Kind::string: layout.add_string(slot, at); return;
        case Kind::strings: return add_strings(layout, slot, at);
        case Kind::iovec:
            return add_iovec(layout, slot, at, layout.args()[shape.index], shape.direction);
        case Kind::msghdr: return add_msghdr(layout, slot, at, shape.direction);
        case Kind::sigmask_pair: return add_sigmask_pair(layout, slot, at);
        default: return;
    }
}

// Tells buffers with a valued length which piece has that length.
void link_lengths(MarshalledCall& call) {
    for (Piece& piece : call.pieces) {
        if (piece.returned != Returned::valued || piece.length_piece != no_piece) continue;
        uint32_t length_argument = argument_shape(call.number, call.args, piece.slot).index;
        for (uint16_t i = 0; i < call.pieces.size(); ++i) {
            if (call.pieces[i].parent == no_piece && call.pieces[i].slot == length_argument) {
                piece.length_piece = i;
            }
        }
    }
}

// SO_GET_FILTER counts instructions of 8 bytes; every other option counts bytes.
bool length_means_something_else(uint32_t number, const SyscallArguments& args) {
    constexpr uint32_t getsockopt_number = 55;
    return number == getsockopt_number && static_cast<uint32_t>(args[1]) == SOL_SOCKET &&
           static_cast<uint32_t>(args[2]) == SO_GET_FILTER;
}

}  // namespace

Argument argument_shape(uint32_t number, const SyscallArguments& args, size_t index) {
    const Row* row = find_row(number);
    if (row == nullptr) return {};
    Argument shape = row->arguments[index];
    switch (shape.kind) {
        case Kind::ioctl: return ioctl_argument(static_cast<uint32_t>(args[1]));
        case Kind::fcntl: return fcntl_argument(static_cast<uint32_t>(args[1]));
        case Kind::prctl: return prctl_argument(static_cast<uint32_t>(args[0]));
        default: return shape;
    }
}

Marshalled marshal(uint32_t number, const SyscallArguments& args, MemoryReader& memory) {
    if (find_row(number) == nullptr) return RawCall{"an unknown call"};
    if (length_means_something_else(number, args)) return RawCall{"SO_GET_FILTER"};
    Layout layout(number, args, memory);
    for (uint32_t i = 0; i < args.size() && !layout.stopped(); ++i) {
        add_argument(layout, argument_shape(number, args, i), i);
    }
    Marshalled outcome = std::move(layout).finish();
    if (auto* call = std::get_if<MarshalledCall>(&outcome)) link_lengths(*call);
    return outcome;
}

}  // namespace gpr
