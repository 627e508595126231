#include "tools/kernel_types.h"

#include <bpf/btf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "tools/flag_names.h"

namespace gpr {

namespace {

constexpr unsigned most_depth = 6;
constexpr size_t most_elements = 16;

uint64_t number_of(std::string_view bytes) {
    uint64_t number = 0;
    std::memcpy(&number, bytes.data(), std::min(bytes.size(), sizeof number));
    return number;
}

int64_t signed_number(std::string_view bytes) {
    const unsigned unused = 64 - 8 * static_cast<unsigned>(std::min<size_t>(bytes.size(), 8));
    return static_cast<int64_t>(number_of(bytes) << unused) >> unused;
}

bool is_zero(std::string_view bytes) {
    return std::ranges::all_of(bytes, [](char c) { return c == 0; });
}

std::string bits_of(std::string_view bytes, unsigned offset, unsigned width) {
    const uint64_t all = number_of(bytes.substr(offset / 8));
    const uint64_t mask = width >= 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
    return fmt::format("{}", all >> (offset % 8) & mask);
}

std::string mode_text(uint64_t mode) {
    static constexpr const char* kinds[] = {"0",       "S_IFIFO", "S_IFCHR", "",        "S_IFDIR",
                                            "",        "S_IFBLK", "",        "S_IFREG", "",
                                            "S_IFLNK", "",        "S_IFSOCK"};
    const uint64_t kind = mode >> 12;
    return fmt::format("{}|0{:o}", kind < std::size(kinds) ? kinds[kind] : "?", mode & 07777);
}

}  // namespace

std::string quoted(std::string_view bytes, bool is_cut) {
    std::string text = "\"";
    for (size_t i = 0; i < bytes.size(); i++) {
        const auto c = static_cast<unsigned char>(bytes[i]);
        switch (c) {
            case '\n': text += "\\n"; continue;
            case '\t': text += "\\t"; continue;
            case '\r': text += "\\r"; continue;
            case '\v': text += "\\v"; continue;
            case '\f': text += "\\f"; continue;
            case '"': text += "\\\""; continue;
            case '\\': text += "\\\\"; continue;
            default: break;
        }
        const bool digit_follows =
            i + 1 < bytes.size() && bytes[i + 1] >= '0' && bytes[i + 1] <= '9';
        text += c >= 32 && c < 127 ? std::string(1, static_cast<char>(c))
                : digit_follows    ? fmt::format("\\{:03o}", c)
                                   : fmt::format("\\{:o}", c);
    }
    return text + (is_cut ? "\"..." : "\"");
}

Result<KernelTypes> KernelTypes::load() {
    btf* types = btf__load_vmlinux_btf();
    if (!types) return fail(errno, "cannot read the kernel's types from /sys/kernel/btf/vmlinux");
    return KernelTypes(types);
}

KernelTypes::KernelTypes(btf* types) : types_(types, btf__free) {}

int KernelTypes::find(std::string_view type) const {
    const bool is_struct = type.starts_with("struct "), is_union = type.starts_with("union ");
    const std::string name(type.substr(is_struct ? 7 : is_union ? 6 : 0));
    if (is_struct || is_union) {
        return btf__find_by_name_kind(types_.get(), name.c_str(),
                                      is_struct ? BTF_KIND_STRUCT : BTF_KIND_UNION);
    }
    const int defined = btf__find_by_name_kind(types_.get(), name.c_str(), BTF_KIND_TYPEDEF);
    return defined > 0 ? defined : btf__find_by_name_kind(types_.get(), name.c_str(), BTF_KIND_INT);
}

std::optional<size_t> KernelTypes::size_of(std::string_view type) const {
    const int id = find(type);
    const long size = id > 0 ? btf__resolve_size(types_.get(), static_cast<unsigned>(id)) : 0;
    if (size <= 0) return std::nullopt;
    return static_cast<size_t>(size);
}

std::string KernelTypes::text_of(std::string_view type, std::string_view bytes, bool whole) const {
    const int id = find(type);
    return id > 0 ? value(static_cast<unsigned>(id), bytes, whole, 0) : quoted(bytes, false);
}

std::string KernelTypes::value(unsigned id, std::string_view bytes, bool whole,
                               unsigned depth) const {
    const btf_type* type = btf__type_by_id(types_.get(), id);
    while (type && (btf_is_mod(type) || btf_is_typedef(type))) {
        type = btf__type_by_id(types_.get(), type->type);
    }
    if (!type || depth > most_depth) return "...";
    if (btf_is_composite(type)) return members(*type, bytes, whole, depth);
    if (btf_is_array(type)) return elements(*type, bytes, whole, depth);
    if (btf_is_ptr(type)) {
        const uint64_t address = number_of(bytes.substr(0, 8));
        return address == 0 ? "NULL" : fmt::format("{:#x}", address);
    }
    const std::string_view own = bytes.substr(0, type->size);
    if (btf_is_any_enum(type) && !btf_is_enum64(type)) {
        const struct btf_enum* each = btf_enum(type);
        for (unsigned i = 0; i < btf_vlen(type); i++) {
            if (static_cast<int64_t>(each[i].val) == signed_number(own)) {
                return btf__name_by_offset(types_.get(), each[i].name_off);
            }
        }
    }
    const bool is_signed = btf_is_int(type) && (btf_int_encoding(type) & BTF_INT_SIGNED);
    return is_signed ? std::to_string(signed_number(own)) : std::to_string(number_of(own));
}

std::string KernelTypes::members(const btf_type& type, std::string_view bytes, bool whole,
                                 unsigned depth) const {
    const std::string name = btf__name_by_offset(types_.get(), type.name_off);
    std::string text = "{";
    bool hides = false;
    const btf_member* all = btf_members(&type);
    for (unsigned i = 0; i < btf_vlen(&type); i++) {
        const unsigned offset = btf_member_bit_offset(&type, i);
        const unsigned width = btf_member_bitfield_size(&type, i);
        const long size = btf__resolve_size(types_.get(), all[i].type);
        const size_t end = width != 0 ? (offset + width + 7) / 8
                                      : offset / 8 + static_cast<size_t>(std::max(size, 0L));
        if (size <= 0 || end > bytes.size()) {  // not taken, or an array without a length
            hides = true;
            break;
        }
        const std::string_view own = bytes.substr(offset / 8, static_cast<size_t>(size));
        const std::string label = btf__name_by_offset(types_.get(), all[i].name_off);
        if (label.starts_with("__") || (!whole && is_zero(own))) {
            hides = hides || !label.starts_with("__");
            continue;
        }
        const FlagSet* flags = width == 0 ? flags_of(name, label) : nullptr;
        const bool is_mode = label == "st_mode" || label == "stx_mode";
        const std::string shown = flags        ? flag_text(*flags, number_of(own))
                                  : is_mode    ? mode_text(number_of(own))
                                  : width != 0 ? bits_of(bytes, offset, width)
                                               : value(all[i].type, own, whole, depth + 1);
        text += fmt::format("{}{}{}", text.size() > 1 ? ", " : "", label.empty() ? "" : label + "=",
                            shown);
        if (btf_is_union(&type)) break;  // its first member stands for all
    }
    if (hides && text.size() > 1) text += ", ...";
    if (hides && text.size() == 1) text += whole ? "..." : "0";
    return text + "}";
}

std::string KernelTypes::elements(const btf_type& type, std::string_view bytes, bool whole,
                                  unsigned depth) const {
    const struct btf_array* array = btf_array(&type);
    const long one = btf__resolve_size(types_.get(), array->type);
    if (one <= 0) return "[]";
    if (one == 1) {  // of characters, most likely
        const size_t end = std::min(bytes.find('\0'), bytes.size());
        return quoted(bytes.substr(0, std::min<size_t>(end, array->nelems)), false);
    }
    std::string text = "[";
    const size_t size = static_cast<size_t>(one);
    for (size_t i = 0; i < array->nelems && (i + 1) * size <= bytes.size(); i++) {
        if (i == most_elements) {
            text += ", ...";
            break;
        }
        text += (i == 0 ? "" : ", ") +
                value(array->type, bytes.substr(i * size, size), whole, depth + 1);
    }
    return text + "]";
}

}  // namespace gpr
