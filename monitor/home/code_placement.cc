#include "monitor/home/code_placement.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "base/log.h"
#include "monitor/home/file_copies.h"
#include "monitor/home/functions.h"
#include "monitor/home/home.h"
#include "monitor/node/anonymous_memory.h"

namespace gpr::home {

namespace {

Result<Fd> copy_of(Fragment& fragment, Range range) {
    Fd fd(memfd_create("gpr-text", MFD_CLOEXEC));
    if (!fd) return fail(errno, "cannot keep the program's code");
    constexpr uint64_t step = 256 * page_size;
    for (uint64_t done = 0; done < range.size(); done += step) {
        uint64_t bytes = std::min(step, range.size() - done);
        auto part = fragment.peek(range.begin + done, bytes / page_size);
        if (pwrite(fd.get(), part.bytes.data(), bytes, static_cast<off_t>(done)) !=
            static_cast<ssize_t>(bytes)) {
            return fail(errno, "cannot keep the program's code");
        }
    }
    return fd;
}

// Whether the memory has the file's content. Asking the kernel which file it is needs privileges.
bool shows(Fragment& fragment, Range range, int file, uint64_t offset) {
    constexpr uint64_t step = 256 * page_size;
    std::vector<std::byte> bytes(step);
    for (uint64_t done = 0; done < range.size(); done += step) {
        uint64_t size = std::min(step, range.size() - done);
        ssize_t got = pread(file, bytes.data(), size, static_cast<off_t>(offset + done));
        if (got <= 0) return done > 0;  // beyond the end of the file
        auto part = fragment.peek(range.begin + done, size / page_size);
        if (std::memcmp(part.bytes.data(), bytes.data(), static_cast<size_t>(got)) != 0) {
            return false;
        }
    }
    return true;
}

}  // namespace

// Keeps the code's content: the file itself or, if that can no longer be opened, a copy. False if
// it is a copy.
Result<bool> CodePlacement::keep_text(const HomeProcess& process, Mapping& m,
                                      const std::string& path, uint64_t offset) {
    std::string full = fmt::format("/proc/{}/root{}", process.pid, path);
    Fd file(open(full.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    struct stat by_path = {}, mapped = {};
    std::string link = fmt::format("/proc/{}/map_files/{:x}-{:x}", process.pid, m.range.begin.value,
                                   m.range.end.value);
    bool known = file && fstat(file.get(), &by_path) == 0 && stat(link.c_str(), &mapped) == 0;
    bool same = known ? by_path.st_ino == mapped.st_ino && by_path.st_dev == mapped.st_dev
                      : file && shows(*process.fragment, m.range, file.get(), offset);
    m.content_offset = same ? offset : 0;
    if (!same) {
        m.digest.reset();
        GPR_TRY(file, copy_of(*process.fragment, m.range));
    }
    m.content = std::make_shared<Fd>(std::move(file));
    return same;
}

Task<Result<void>> CodePlacement::trap_code(HomeProcess& process, Mapping& m, std::string path,
                                            uint64_t offset) {
    Fragment& fragment = *process.fragment;
    auto kept = keep_text(process, m, path, offset);
    if (!kept) co_return tl::make_unexpected(kept.error());
    home_.file_copies.note_copied(process, m);
    auto taken = co_await take_code_away(fragment, m);
    if (!taken) co_return taken;
    spdlog::debug("code of {} at {:#x} runs at node {}", path, m.range.begin.value, m.code_node);
    co_return Result<void>{};
}

// Replaces the code by a range without pages. Its content must be known and never change.
Task<Result<void>> CodePlacement::take_code_away(Fragment& fragment, Mapping& m) {
    auto replaced =
        co_await replace_by_anonymous(fragment, m, "cannot take the code of a library away");
    if (!replaced) co_return replaced;
    m.trapped = true;
    m.code = CodeClass::remote;
    co_return Result<void>{};
}

CodePlace CodePlacement::place_of(const std::string& path, const HomeProcess& process) {
    const SplitRule* rule = home_.policy.rule_for(path);
    if (rule) home_.rule_use.note(*rule);
    if (home_.rule_use.note_code(path)) {
        spdlog::info("{} is mapped: {}", path,
                     rule                             ? rule_text(*rule)
                     : home_.policy.begins_remotely() ? "all"
                                                      : "no rule names it");
    }
    const CodePlace place = home_.policy.place(path, process.executable);
    if (place.code == CodeClass::remote) {  // including functions that rules choose
        for (const SplitRule& each : home_.policy.function_rules(path)) home_.rule_use.note(each);
    }
    return place;
}

Task<Result<void>> CodePlacement::place_code(HomeProcess& process, Mapping& m, std::string path,
                                             uint64_t offset) {
    bool text = m.file && !m.shared && (m.prot & PROT_EXEC) && !(m.prot & PROT_WRITE);
    if (!text) co_return Result<void>{};
    const CodePlace place = place_of(path, process);
    m.code = place.code;
    m.code_node = place.node;
    if (m.code == CodeClass::neutral) {
        co_return home_.functions.place_functions(process, m, path, offset);
    }
    if (m.code != CodeClass::remote) co_return Result<void>{};
    co_return co_await trap_code(process, m, std::move(path), offset);
}

}  // namespace gpr::home
