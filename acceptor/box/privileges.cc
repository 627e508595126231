#include "acceptor/box/privileges.h"

#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/fd.h"

namespace gpr {
namespace {

struct CapabilitySets {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> words{};

    long read() { return syscall(SYS_capget, &header, words.data()); }
    long write() { return syscall(SYS_capset, &header, words.data()); }
};

// From <linux/landlock.h> of Linux 6.12.
constexpr long sys_landlock_create_ruleset = 444, sys_landlock_restrict_self = 446;
constexpr unsigned landlock_create_ruleset_version = 1;
constexpr uint64_t landlock_scope_abstract_unix_socket = 1;
constexpr long landlock_with_scopes = 6;
struct LandlockRuleset {
    uint64_t handled_access_fs = 0, handled_access_net = 0;
    uint64_t scoped = landlock_scope_abstract_unix_socket;
};

}  // namespace

int probe_leaving_abstract_sockets() {
    const long version =
        syscall(sys_landlock_create_ruleset, nullptr, 0, landlock_create_ruleset_version);
    if (version == -1) return errno;
    return version >= landlock_with_scopes ? 0 : ENOSYS;
}

Result<> leave_abstract_sockets() {
    if (const int error = probe_leaving_abstract_sockets(); error != 0) {
        return fail(error, "keep to own abstract sockets");
    }
    const LandlockRuleset scopes;
    const Fd ruleset(
        static_cast<int>(syscall(sys_landlock_create_ruleset, &scopes, sizeof(scopes), 0)));
    if (!ruleset) return fail(errno, "keep to own abstract sockets");
    GPR_CHECK(from_libc(syscall(sys_landlock_restrict_self, ruleset.get(), 0),
                        "keep to own abstract sockets"));
    return {};
}

bool has_capability(unsigned capability) {
    CapabilitySets sets;
    if (sets.read() == -1) return false;
    return (sets.words[capability / 32].effective >> (capability % 32) & 1) != 0;
}

Result<> raise_permitted_capabilities() {
    CapabilitySets sets;
    GPR_CHECK(from_libc(sets.read(), "read capabilities"));
    for (auto& word : sets.words) word.effective = word.permitted;
    GPR_CHECK(from_libc(sets.write(), "raise capabilities"));
    return {};
}

Result<> keep_only_capabilities(uint64_t kept) {
    // Raw, because libc's setgroups would signal threads that this process does not have.
    GPR_CHECK(from_libc(syscall(SYS_setgroups, 0, nullptr), "drop supplementary groups"));
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    // The kernel's highest capability is before the first EINVAL.
    for (unsigned capability = 0; capability < 64; ++capability) {
        if (prctl(PR_CAPBSET_READ, capability) < 0) break;
        if ((kept >> capability & 1) != 0) continue;
        GPR_CHECK(from_libc(prctl(PR_CAPBSET_DROP, capability), "drop a bounding capability"));
    }
    CapabilitySets sets;
    GPR_CHECK(from_libc(sets.read(), "read capabilities"));
    for (size_t word = 0; word < sets.words.size(); ++word) {
        const auto mask = static_cast<uint32_t>(kept >> (32 * word));
        sets.words[word].permitted &= mask;
        sets.words[word].effective = sets.words[word].permitted;
        sets.words[word].inheritable = 0;
    }
    GPR_CHECK(from_libc(sets.write(), "drop capabilities"));
    return {};
}

}  // namespace gpr
