#include "tools/call_text.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "syscall/table.h"
#include "tools/call_values.h"
#include "tools/flag_names.h"

namespace gpr {

namespace {

constexpr int64_t most_error = 4095;

const Row* row_of(int64_t number) {
    return number >= 0 && number < UINT32_MAX ? find_row(static_cast<uint32_t>(number)) : nullptr;
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
    return std::ranges::find(words, word) != words.end();
}

std::string pointer_text(uint64_t address) {
    return address == 0 ? "NULL" : fmt::format("{:#x}", address);
}

// Numbers by their C types.
std::string number_text(const Parameter* parameter, uint64_t value) {
    if (!parameter) return value > 0xffff ? fmt::format("{:#x}", value) : std::to_string(value);
    const std::string& type = parameter->type;
    if (is_one_of(type, {"umode_t", "mode_t"})) {
        return (value & 0xffffffff) == 0 ? "0" : fmt::format("0{:o}", value & 0xffff);
    }
    if (is_one_of(type, {"uid_t", "gid_t"})) {
        return std::to_string(static_cast<int32_t>(value));
    }
    if (is_one_of(type, {"unsigned int", "u32", "__u32", "unsigned", "qid_t"})) {
        return std::to_string(static_cast<uint32_t>(value));
    }
    if (is_one_of(type, {"long", "off_t", "loff_t", "ssize_t"})) {
        return std::to_string(static_cast<int64_t>(value));
    }
    const bool is_address = parameter->is_pointer() || type.find("(*)") != std::string::npos ||
                            is_one_of(parameter->name, {"addr", "start", "brk", "newsp", "tls",
                                                        "new_addr", "old_addr", "data", "arg"});
    if (is_address && type != "int") {
        return value == 0 ? (parameter->is_pointer() || parameter->name == "addr" ||
                                     parameter->name == "brk"
                                 ? "NULL"
                                 : "0")
                          : fmt::format("{:#x}", value);
    }
    if (is_one_of(type, {"unsigned long", "size_t", "aio_context_t", "u64", "__u64"})) {
        return value >> 40 ? fmt::format("{:#x}", value) : std::to_string(value);
    }
    return std::to_string(static_cast<int32_t>(value));  // int, pid_t, clockid_t and the like
}

// A narrow type's upper half is not the kernel's concern.
uint64_t as_passed(const Parameter* parameter, uint64_t value) {
    const bool is_wide =
        !parameter || parameter->is_pointer() ||
        is_one_of(parameter->type, {"unsigned long", "long", "size_t", "loff_t", "off_t", "u64"});
    return is_wide ? value : value & 0xffffffff;
}

const FlagSet* flags_for(const TracedCall& call, const std::string& name, unsigned index) {
    if (index == 2 && is_one_of(name, {"setsockopt", "getsockopt"})) {
        return flags_of("sockopt", std::to_string(static_cast<int32_t>(call.args[1])));
    }
    if (index == 2 && name == "fcntl" && call.args[1] == F_SETFL) return flags_of("open", "1");
    return flags_of(name, std::to_string(index));
}

// Calls that take fewer arguments than their signature has, for some values.
size_t argument_count(const TracedCall& call, const std::string& name, size_t most) {
    const auto makes_file = [](uint64_t flags) { return (flags & (O_CREAT | __O_TMPFILE)) != 0; };
    if (name == "open" && !makes_file(call.args[1])) return 2;
    if (name == "openat" && !makes_file(call.args[2])) return 3;
    if (name == "fcntl" &&
        is_one_of(std::to_string(call.args[1]), {"1", "3", "9", "11", "1025", "1032", "1034"})) {
        return 2;  // F_GETFD, F_GETFL, F_GETOWN, F_GETSIG, F_GETLEASE, F_GETPIPE_SZ, F_GET_SEALS
    }
    if (name == "mremap" && !(call.args[3] & 2)) return 4;  // MREMAP_FIXED
    if (name == "prctl") {
        return is_one_of(std::to_string(call.args[0]), {"15", "16"}) ? 2 : most;  // the name
    }
    return most;
}

std::string fd_text(uint64_t value, const CallText::FileName& file_name) {
    const auto fd = static_cast<int32_t>(value);
    if (fd == AT_FDCWD) return "AT_FDCWD";
    const std::string file = fd >= 0 && file_name ? file_name(value) : "";
    return file.empty() ? std::to_string(fd) : fmt::format("{}<{}>", fd, file);
}

}  // namespace

std::string CallText::begin(const TracedCall& call, const FileName& file_name) const {
    const std::string name = call_name(call.number);
    const std::vector<Parameter>* signature = signature_of(name);
    const Row* row = row_of(call.number);
    size_t count = 6;
    if (signature) {
        count = std::min<size_t>(signature->size(), 6);
    } else if (row) {
        const auto has_none = [](const Argument& a) { return a.kind == Kind::none; };
        count = static_cast<size_t>(std::ranges::find_if(row->arguments, has_none) -
                                    row->arguments.begin());
    }
    count = std::min(count, argument_count(call, name, count));
    std::string text = name + "(";
    for (unsigned i = 0; i < count; i++) {
        const Place place{call, name, i, signature ? &(*signature)[i] : nullptr, file_name};
        text += (i == 0 ? "" : ", ") + argument(place);
    }
    return text;
}

std::string CallText::argument(const Place& place) const {
    const uint64_t value = place.value();
    if (const FlagSet* flags = flags_for(place.call, place.name, place.index)) {
        return flag_text(*flags, as_passed(place.parameter, value));
    }
    if (place.index == 2 && place.name == "fcntl" && place.call.args[1] == F_SETFD) {
        return value == FD_CLOEXEC ? "FD_CLOEXEC" : std::to_string(value);
    }
    const Row* row = row_of(place.call.number);
    if (row && row->arguments.at(place.index).kind == Kind::fd) {
        return fd_text(value, place.file_name);
    }
    const bool names_signal =
        place.parameter && is_one_of(place.parameter->name, {"sig", "signum"});
    if (names_signal) return value == 0 ? "0" : signal_name(static_cast<int32_t>(value));
    const bool is_pointer = (place.parameter && place.parameter->is_pointer()) ||
                            (row && row->arguments.at(place.index).is_pointer());
    return is_pointer ? pointed(place) : number_text(place.parameter, value);
}

// What is known of the memory that an argument points to: what the call has left there, or what
// there was when it began.
std::string CallText::pointed(const Place& place) const {
    const uint64_t value = place.value();
    const unsigned index = place.index;
    if (value == 0) {
        return place.parameter && !place.parameter->is_pointer() ? "0" : "NULL";
    }
    const Row* row = row_of(place.call.number);
    const Kind kind = row ? row->arguments.at(index).kind : Kind::raw;
    const TracedPart* count = place.call.part(index, GPR_PART_COUNT, false);
    if (!count) count = place.call.part(index, GPR_PART_COUNT, true);
    if (count) {
        return fmt::format("{:#x} /* {} var{} */", value, count->about.whole,
                           count->about.whole == 1 ? "" : "s");
    }
    if (kind == Kind::strings) return strings_text(place.call, index, value);
    for (const bool at_end : {true, false}) {
        if (const TracedPart* text = place.call.part(index, GPR_PART_STRING, at_end)) {
            return cut(*text);
        }
        const TracedPart* part = place.call.part(index, GPR_PART_BYTES, at_end);
        if (!part) continue;
        if (kind == Kind::iovec) return vector_text(place.call, index, at_end, *part);
        if (kind == Kind::msghdr) return message_text(place.call, index, at_end, *part);
        return bytes_text(place, *part);
    }
    const bool is_number = place.parameter && !place.parameter->is_pointer() && value <= 0xffff;
    return is_number ? std::to_string(value) : pointer_text(value);
}

std::string CallText::bytes_text(const Place& place, const TracedPart& part) const {
    const std::string type = place.parameter ? place.parameter->pointee() : "";
    const std::string_view bytes = part.bytes;
    if (type.empty()) {  // a number that may be a pointer
        const bool has_name = place.name == "prctl" && (place.call.args[0] == PR_SET_NAME ||
                                                        place.call.args[0] == PR_GET_NAME);
        return has_name ? quoted(bytes.substr(0, std::min<size_t>(bytes.find('\0'), 15)), false)
                        : pointer_text(place.value());
    }
    if (place.name.starts_with("getdents")) {
        return fmt::format("{:#x} /* {} bytes */", place.value(), part.about.whole);
    }
    if (type == "struct sockaddr") return socket_address_text(bytes);
    if (type == "struct sigaction") return signal_action_text(bytes);
    if (type == "sigset_t") return signal_set_text(bytes);
    if (type == "struct siginfo" || type == "siginfo_t") return signal_info_text(bytes);
    if (place.name == "wait4" && place.index == 1 && bytes.size() >= sizeof(uint32_t)) {
        uint32_t status = 0;
        std::memcpy(&status, bytes.data(), sizeof status);
        return wait_status_text(status);
    }
    if (is_one_of(type, {"char", "void", "unsigned char", "u8", "__u8"})) {
        return cut(part);
    }
    const Row* row = row_of(place.call.number);
    const bool is_guess = row && row->arguments.at(place.index).kind == Kind::raw;
    if (is_guess && !type.starts_with("struct ")) return pointer_text(place.value());
    if (is_guess) return one_structure(type, part);
    return structures(type, part);
}

// Of memory that may be longer.
std::string CallText::one_structure(const std::string& type, const TracedPart& part) const {
    const auto size = types_ ? types_->size_of(type) : std::nullopt;
    if (!size) return pointer_text(part.about.address);
    return types_->text_of(type, std::string_view(part.bytes).substr(0, *size), whole_);
}

// File names are never cut: what follows the limit would be missed most.
std::string CallText::cut(const TracedPart& part) const {
    const size_t limit = part.about.kind == GPR_PART_STRING ? part.bytes.size() : limit_;
    const size_t shown = std::min(limit, part.bytes.size());
    return quoted(std::string_view(part.bytes).substr(0, shown), part.about.whole > shown);
}

// One of them, or an array.
std::string CallText::structures(const std::string& type, const TracedPart& part) const {
    const auto size = types_ ? types_->size_of(type) : std::nullopt;
    if (!size) return pointer_text(part.about.address);
    const std::string_view bytes = part.bytes;
    const bool is_structure = type.starts_with("struct ") || type.starts_with("union ");
    if (is_structure && part.about.whole <= *size) return types_->text_of(type, bytes, whole_);
    std::string text = "[";
    for (size_t at = 0; at + *size <= bytes.size(); at += *size) {
        text += (at == 0 ? "" : ", ") + types_->text_of(type, bytes.substr(at, *size), whole_);
    }
    return text + (part.about.whole > bytes.size() ? ", ...]" : "]");
}

std::string CallText::result(const TracedCall& call) {
    if (!call.result) return "?";
    const int64_t result = *call.result;
    if (is_restart(result)) {
        const bool if_wanted = result == -512;
        return if_wanted        ? "? ERESTARTSYS (To be restarted if SA_RESTART is set)"
               : result == -513 ? "? ERESTARTNOINTR (To be restarted)"
               : result == -514 ? "? ERESTARTNOHAND (To be restarted if no handler)"
                                : "? ERESTART_RESTARTBLOCK (Interrupted by signal)";
    }
    const std::string name = call_name(call.number);
    if (result < 0 && result >= -most_error) {
        const auto error = static_cast<int>(-result);
        return fmt::format("-1 {} ({})", error_name(error), std::strerror(error));
    }
    if (is_one_of(name, {"mmap", "mremap", "brk", "shmat"})) {
        return fmt::format("{:#x}", static_cast<uint64_t>(result));
    }
    const FlagSet* flags = flags_of(name, "result");
    return flags ? flag_text(*flags, static_cast<uint64_t>(result)) : std::to_string(result);
}

}  // namespace gpr
