#include "syscall/lookup_call.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/stat.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

namespace gpr {

namespace {

constexpr size_t longest_path = 512;  // bytes; longer ones are not worth their room
constexpr uint32_t no_automount = 0x800, empty_path = 0x1000;
constexpr uint32_t any_sync = 0x6000;  // AT_STATX_SYNC_TYPE

using Asks = LookupCall::Kind;

// The path, if it names something in a directory.
std::string_view path_of(const MarshalledCall& call) {
    const auto* text = reinterpret_cast<const char*>(call.in_bytes.data());
    const std::string_view given(text, call.in_bytes.size());
    const std::string_view path = given.substr(0, given.find('\0'));
    if (path.size() + 1 != given.size() || path.size() > longest_path) return {};
    const std::string_view last = path.substr(path.find_last_of('/') + 1);
    return last.empty() || last == "." || last == ".." ? std::string_view() : path;
}

bool opens_plainly(uint64_t flags) {
    constexpr uint32_t large_file = 0100000;
    constexpr uint32_t plain =
        O_ACCMODE | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_DIRECTORY | O_NOCTTY | large_file;
    const auto given = static_cast<uint32_t>(flags);
    return (given & ~plain) == 0 && (given & O_ACCMODE) != O_ACCMODE;
}

bool asks_plainly(uint64_t mode) { return (static_cast<uint32_t>(mode) & ~7U) == 0; }

bool has_only(uint64_t flags, uint32_t allowed) {
    return (static_cast<uint32_t>(flags) & ~allowed) == 0;
}

std::optional<LookupCall> by_flags(Asks kind, uint64_t flags) {
    const bool follows = !(flags & AT_SYMLINK_NOFOLLOW);
    return LookupCall{kind, follows, {}, static_cast<uint32_t>(flags), 0};
}

std::optional<LookupCall> extended(const SyscallArguments& a) {
    constexpr uint32_t allowed = AT_SYMLINK_NOFOLLOW | no_automount | empty_path | any_sync;
    const auto mask = static_cast<uint32_t>(a[3]);
    const bool both = (a[2] & any_sync) == any_sync;
    if (!has_only(a[2], allowed) || both || (mask & STATX__RESERVED)) return std::nullopt;
    auto call = by_flags(Asks::extended_status, a[2]);
    call->mask = mask;
    return call;
}

std::optional<LookupCall> form_of(uint32_t number, const SyscallArguments& a) {
    constexpr uint32_t of_status = AT_SYMLINK_NOFOLLOW | no_automount | empty_path;
    constexpr uint32_t of_access = AT_SYMLINK_NOFOLLOW | empty_path | AT_EACCESS;
    switch (number) {
        case SYS_stat: return LookupCall{Asks::status};
        case SYS_lstat: return LookupCall{Asks::status, false};
        case SYS_newfstatat:
            if (!has_only(a[3], of_status)) return std::nullopt;
            return by_flags(Asks::status, a[3]);
        case SYS_statx: return extended(a);
        case SYS_access:
            if (!asks_plainly(a[1])) return std::nullopt;
            return LookupCall{Asks::exists, true, {}, static_cast<uint32_t>(a[1])};
        case SYS_faccessat:
        case SYS_faccessat2: {
            const uint64_t flags = number == SYS_faccessat ? 0 : a[3];
            if (!asks_plainly(a[2]) || !has_only(flags, of_access)) return std::nullopt;
            auto call = by_flags(Asks::exists, flags);
            call->flags = static_cast<uint32_t>(a[2]);
            return call;
        }
        case SYS_readlink:
        case SYS_readlinkat: {
            const auto room = static_cast<int32_t>(a[number == SYS_readlink ? 2 : 3]);
            if (room <= 0) return std::nullopt;
            return LookupCall{Asks::link, false};
        }
        case SYS_open:
        case SYS_openat: {
            const uint64_t flags = a[number == SYS_open ? 1 : 2];
            if (!opens_plainly(flags)) return std::nullopt;
            return LookupCall{Asks::open, !(flags & O_NOFOLLOW)};
        }
        case SYS_getcwd: return LookupCall{Asks::directory};
        default: return std::nullopt;
    }
}

bool has_directory(uint32_t number) {
    switch (number) {
        case SYS_newfstatat:
        case SYS_statx:
        case SYS_faccessat:
        case SYS_faccessat2:
        case SYS_readlinkat:
        case SYS_openat: return true;
        default: return false;
    }
}

}  // namespace

bool may_look_up(uint32_t number) {
    switch (number) {
        case SYS_stat:
        case SYS_lstat:
        case SYS_access:
        case SYS_readlink:
        case SYS_open:
        case SYS_getcwd: return true;
        default: return has_directory(number);
    }
}

std::optional<LookupCall> lookup_of(const MarshalledCall& call) {
    if (has_directory(call.number) && static_cast<int>(call.args[0]) != AT_FDCWD) {
        return std::nullopt;
    }
    auto lookup = form_of(call.number, call.args);
    if (!lookup || lookup->kind == Asks::directory) return lookup;
    lookup->path = path_of(call);
    return lookup->path.empty() ? std::nullopt : lookup;
}

std::string_view directory_part(std::string_view path) {
    return path.substr(0, path.find_last_of('/') + 1);  // 0: there is no slash
}

std::optional<MarshalledCall> with_path(const MarshalledCall& call, std::string_view path) {
    const auto lookup = lookup_of(call);
    if (!lookup || lookup->path.empty()) return std::nullopt;
    MarshalledCall other = call;
    const auto text = std::as_bytes(std::span(path));
    other.in_bytes.assign(text.begin(), text.end());
    other.in_bytes.push_back(std::byte{0});
    if (!lookup_of(other)) return std::nullopt;
    return other;
}

std::pair<uint32_t, SyscallArguments> following_links(const MarshalledCall& call) {
    uint32_t number = call.number;
    SyscallArguments args = call.args;
    switch (number) {
        case SYS_lstat: number = SYS_stat; break;
        case SYS_newfstatat: args[3] &= ~uint64_t{AT_SYMLINK_NOFOLLOW}; break;
        case SYS_statx: args[2] &= ~uint64_t{AT_SYMLINK_NOFOLLOW}; break;
        default: break;
    }
    return {number, args};
}

std::vector<std::byte> answer_with(const MarshalledCall& call, std::span<const std::byte> status) {
    std::vector<std::byte> answer;
    for (size_t i = 0; i < call.pieces.size(); i++) {
        const bool is_room = call.pieces[i].in_length == 0;
        if (!is_room || call.pieces[i].capacity < status.size()) continue;
        const std::array head{static_cast<uint32_t>(i), static_cast<uint32_t>(status.size())};
        answer.resize(sizeof head + status.size());
        std::memcpy(answer.data(), head.data(), sizeof head);
        std::ranges::copy(status, answer.begin() + sizeof head);
        break;
    }
    return answer;
}

OnLookups on_lookups(uint32_t number, const uint64_t* args) {
    switch (number) {
        case SYS_chdir:
        case SYS_fchdir:
        case SYS_execve:
        case SYS_execveat:
        case SYS_setrlimit:
        case SYS_setuid:
        case SYS_setgid:
        case SYS_setreuid:
        case SYS_setregid:
        case SYS_setresuid:
        case SYS_setresgid:
        case SYS_setfsuid:
        case SYS_setfsgid:
        case SYS_setgroups:
        case SYS_capset:
        case SYS_unshare:
        case SYS_setns:
        case SYS_chroot:
        case SYS_pivot_root:
        case SYS_landlock_restrict_self: return OnLookups::forgets;
        case SYS_prlimit64: return args[2] != 0 ? OnLookups::forgets : OnLookups::nothing;
        case SYS_prctl:
            return args[0] == PR_SET_SECUREBITS ? OnLookups::forgets : OnLookups::nothing;
        // Threads that do not share their working directory, and processes that do.
        case SYS_clone3: return OnLookups::forgets;  // its flags are in memory
        case SYS_clone: {
            const bool shares = args[0] & CLONE_FS, is_thread = args[0] & CLONE_THREAD;
            return shares != is_thread ? OnLookups::forgets : OnLookups::nothing;
        }
        case SYS_ioctl: {
            const auto command = static_cast<uint32_t>(args[1]);
            const bool sets = command == static_cast<uint32_t>(FS_IOC_SETFLAGS) ||
                              command == static_cast<uint32_t>(FS_IOC_FSSETXATTR);
            return sets ? OnLookups::forgets_all : OnLookups::nothing;
        }
        case 469: return OnLookups::forgets_all;  // file_setattr(2), Linux 6.17
        default: return OnLookups::nothing;
    }
}

}  // namespace gpr
