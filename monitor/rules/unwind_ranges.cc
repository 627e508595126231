#include "monitor/rules/unwind_ranges.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <span>
#include <string_view>

namespace gpr {

namespace {

// Pointer encodings (Linux Standard Base Core, "DWARF Exception Header Encoding").
constexpr uint8_t form_mask = 0x0f, relative_mask = 0x70, relative_to_itself = 0x10;

// Reads the section's bytes, each with its address. Reads zeros beyond the end.
class Cursor {
public:
    Cursor(std::span<const std::byte> bytes, uint64_t address, size_t at)
        : bytes_(bytes), address_(address), at_(std::min(at, bytes.size())) {}

    template <class T>
    T take() {
        T value{};
        if (bytes_.size() - at_ < sizeof value) {
            at_ = bytes_.size();
            return value;
        }
        std::memcpy(&value, bytes_.data() + at_, sizeof value);
        at_ += sizeof value;
        return value;
    }

    uint64_t take_variable() {
        uint64_t value = 0;
        for (unsigned shift = 0; at_ < bytes_.size(); shift += 7) {
            auto byte = take<uint8_t>();
            if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7f) << shift;
            if (!(byte & 0x80)) break;
        }
        return value;
    }

    std::string_view take_text() {
        auto text = reinterpret_cast<const char*>(bytes_.data() + at_);
        size_t length = strnlen(text, bytes_.size() - at_);
        at_ = std::min(at_ + length + 1, bytes_.size());
        return {text, length};
    }

    uint64_t take_pointer(uint8_t encoding) {
        uint64_t here = address_ + at_;
        uint64_t value = take_value(encoding);
        return (encoding & relative_mask) == relative_to_itself ? value + here : value;
    }

    uint64_t take_value(uint8_t encoding) {
        switch (encoding & form_mask) {
            case 0x02: return take<uint16_t>();
            case 0x03: return take<uint32_t>();
            case 0x0a: return static_cast<uint64_t>(int64_t{take<int16_t>()});
            case 0x0b: return static_cast<uint64_t>(int64_t{take<int32_t>()});
            default: return take<uint64_t>();
        }
    }

    [[nodiscard]] size_t at() const { return at_; }
    [[nodiscard]] bool done() const { return at_ >= bytes_.size(); }

private:
    std::span<const std::byte> bytes_;
    uint64_t address_;
    size_t at_;
};

// How the entries with this common information entry (CIE) encode addresses.
uint8_t encoding_of(Cursor common) {
    common.take<uint8_t>();  // the version
    std::string_view augmentation = common.take_text();
    common.take_variable();  // alignments, and the register of the return address
    common.take_variable();
    common.take_variable();
    if (augmentation.empty() || augmentation.front() != 'z') return 0;
    common.take_variable();
    for (char what : augmentation.substr(1)) {
        if (what == 'R') return common.take<uint8_t>();
        if (what == 'P') {
            common.take_value(common.take<uint8_t>());
        } else if (what == 'L') {
            common.take<uint8_t>();
        }
    }
    return 0;
}

}  // namespace

UnwindRanges::UnwindRanges(Elf* elf) {
    size_t names = 0;
    if (elf_getshdrstrndx(elf, &names) != 0) return;
    Elf_Scn* section = nullptr;
    while ((section = elf_nextscn(elf, section))) {
        GElf_Shdr header{};
        if (!gelf_getshdr(section, &header)) continue;
        const char* name = elf_strptr(elf, names, header.sh_name);
        if (!name || std::strcmp(name, ".eh_frame") != 0) continue;
        Elf_Data* data = elf_rawdata(section, nullptr);
        if (!data || !data->d_buf) return;
        std::span bytes(static_cast<const std::byte*>(data->d_buf), data->d_size);
        std::map<size_t, uint8_t> encodings;  // by the offset of the CIE
        for (Cursor entries(bytes, header.sh_addr, 0); !entries.done();) {
            uint64_t length = entries.take<uint32_t>();
            if (length == 0xffffffff) length = entries.take<uint64_t>();
            size_t begin = entries.at();
            if (length == 0 || length > bytes.size() - begin) break;
            Cursor entry(bytes, header.sh_addr, begin);
            auto back = entry.take<uint32_t>();
            if (back == 0) {
                encodings[begin] = encoding_of(entry);
            } else if (auto common = encodings.find(begin - back + 4); common != encodings.end()) {
                Span span;
                span.begin = entry.take_pointer(common->second);
                span.end = span.begin + entry.take_value(common->second);
                if (span.end > span.begin) spans_.push_back(span);
            }
            entries = Cursor(bytes, header.sh_addr, begin + length);
        }
    }
    std::sort(spans_.begin(), spans_.end(),
              [](const Span& a, const Span& b) { return a.begin < b.begin; });
}

std::optional<UnwindRanges::Span> UnwindRanges::find(uint64_t address) const {
    auto next =
        std::upper_bound(spans_.begin(), spans_.end(), address,
                         [](uint64_t value, const Span& span) { return value < span.begin; });
    if (next == spans_.begin() || address >= std::prev(next)->end) return std::nullopt;
    return *std::prev(next);
}

}  // namespace gpr
