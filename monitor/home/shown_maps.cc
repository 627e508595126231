#include "monitor/home/shown_maps.h"

#include <sys/sysmacros.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "base/log.h"
#include "monitor/paging/growth.h"
#include "monitor/tracee/reserved_range.h"

namespace gpr {

namespace {

constexpr size_t name_column = 73;

struct Header {
    Range range;
    std::string permissions;
    uint64_t inode = 0;
};

// Parses the line that begins a mapping; nullopt for the detail lines of smaps, which begin with a
// capital letter.
std::optional<Header> header_of(const std::string& line) {
    Header h;
    char permissions[5] = {};
    int n = std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s %*x %*x:%*x %" SCNu64,
                        &h.range.begin.value, &h.range.end.value, permissions, &h.inode);
    if (n != 4) return std::nullopt;
    h.permissions = permissions;
    return h;
}

// file: with an empty path if there is none.
std::string line_of(const Header& h, uint64_t offset, const CopiedFile& file) {
    std::string line = fmt::format("{:08x}-{:08x} {} {:08x} {:02x}:{:02x} {} ", h.range.begin.value,
                                   h.range.end.value, h.permissions, offset, major(file.device),
                                   minor(file.device), file.inode);
    if (file.path.empty()) return line;
    line.resize(std::max(line.size(), name_column), ' ');
    return line + file.path;
}

// The kernel may merge copies of files with anonymous memory next to them: writes a line for each
// part. Empty if no copy is in the mapping.
std::string lines_of(HomeProcess& process, const Header& h) {
    if (h.inode != 0) return "";
    std::string lines;
    bool named = false;
    Header part = h;
    process.fragment->space.overlapping(h.range, [&](const Mapping& m) {
        auto file =
            m.file && !m.shared ? process.copied_files.find(m.object) : process.copied_files.end();
        if (file == process.copied_files.end()) return;
        Range copy{std::max(m.range.begin, h.range.begin), std::min(m.range.end, h.range.end)};
        named = true;
        part.range.end = copy.begin;
        if (!part.range.empty()) lines += line_of(part, 0, {}) + '\n';
        part.range = copy;
        lines +=
            line_of(part, m.content_offset + (copy.begin - m.range.begin), file->second) + '\n';
        part.range.begin = copy.end;
    });
    part.range.end = h.range.end;
    if (named && !part.range.empty()) lines += line_of(part, 0, {}) + '\n';
    return named ? lines : "";
}

// Whether the mapping is room for the main stack that the program does not use yet. Reduces `h` to
// the part in use.
bool is_unused(const HomeProcess& process, Header& h, Address stack_used) {
    auto stack = main_stack(process.fragment->space);
    if (!stack || !h.range.overlaps({stack->begin, stack_used})) return false;
    h.range.begin = std::min(stack_used, h.range.end);
    return h.range.empty();
}

// Joins the parts of memory that grows: to the program it is one mapping, to the kernel several.
class GrowingLine {
public:
    // The text to write before this line, which may or may not continue the mapping.
    std::string before(const AddressSpace& space, const Header& h) {
        auto run = growing_run(space, h.range.begin);
        std::string text = run && run == run_ ? "" : take();
        run_ = run;
        return text;
    }
    // Whether the line is a part of a mapping that is written later.
    bool takes(const Header& h, const std::string& line) {
        if (!run_) return false;
        if (!shown_) shown_ = h;
        shown_->range.end = h.range.end;
        if (line.ends_with("[stack]")) name_ = "[stack]";
        return true;
    }
    std::string take() {
        auto shown = std::exchange(shown_, std::nullopt);
        return shown ? line_of(*shown, 0, {std::exchange(name_, ""), 0, 0}) + '\n' : "";
    }

private:
    std::optional<Range> run_;
    std::optional<Header> shown_;
    std::string name_;
};

}  // namespace

std::string shown_maps(HomeProcess& process, const std::string& path, Address stack_used,
                       bool details) {
    std::ifstream in(path);
    std::string text, line;
    bool hidden = false;
    GrowingLine growing;
    while (std::getline(in, line)) {
        std::string lines;
        if (auto h = header_of(line)) {
            hidden = h->range.overlaps(reserved_range) || is_unused(process, *h, stack_used);
            if (!details) text += growing.before(process.fragment->space, *h);
            if (!details && !hidden && growing.takes(*h, line)) continue;
            if (!details) lines = lines_of(process, *h);
        }
        if (!hidden) text += lines.empty() ? line + '\n' : lines;
    }
    return text + growing.take();
}

}  // namespace gpr
