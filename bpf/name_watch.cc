#include "bpf/name_watch.h"

#include <bpf/bpf.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/fd.h"
#include "bpf/name_layout.h"
#include "name_watch_image.h"

namespace gpr {

Result<std::unique_ptr<NameWatch>> NameWatch::load() {
    GPR_TRY(auto programs, LoadedPrograms::load(name_watch_image));
    std::unique_ptr<NameWatch> watch(new NameWatch(std::move(programs)));
    GPR_TRY(watch->attached_, watch->programs_.attach("call_ends"));
    return watch;
}

Result<> NameWatch::watch(std::span<const std::string> beginnings) {
    for (const std::string& text : beginnings) {
        gpr_beginning key{};
        const size_t size = std::min(text.size(), sizeof key.text);
        key.bits = static_cast<uint32_t>(8 * size);
        text.copy(key.text, size);
        const uint32_t is_watched = 1;
        const int map = programs_.map("beginnings");
        if (bpf_map_update_elem(map, &key, &is_watched, BPF_ANY) != 0) {
            return fail(errno, fmt::format("cannot watch names that begin with {}", text));
        }
    }
    return {};
}

Result<> NameWatch::join(pid_t pid) { return set_member(pid, true); }

void NameWatch::leave(pid_t pid) { (void)set_member(pid, false); }

Result<> NameWatch::set_member(pid_t pid, bool is_member) {
    const Fd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    const int key = process.get();
    const uint32_t value = is_member;
    if (!process || bpf_map_update_elem(programs_.map("members"), &key, &value, BPF_ANY) != 0) {
        return fail(errno, fmt::format("cannot watch the names that process {} uses", pid));
    }
    return {};
}

}  // namespace gpr
