#include "monitor/home/shared_identity.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstddef>

namespace gpr {

namespace {

// Only file systems that can be exported have file handles. A handle includes a generation number,
// so it is never reused.
std::string handle_of(const Fd& path) {
    alignas(file_handle) std::byte room[sizeof(file_handle) + MAX_HANDLE_SZ] = {};
    auto* handle = reinterpret_cast<file_handle*>(room);
    handle->handle_bytes = MAX_HANDLE_SZ;
    int mount = 0;
    if (name_to_handle_at(path.get(), "", handle, &mount, AT_EMPTY_PATH) != 0) return {};
    auto* bytes = reinterpret_cast<const char*>(handle->f_handle);
    return fmt::format("{}:", handle->handle_type) + std::string(bytes, handle->handle_bytes);
}

}  // namespace

bool SharedIdentity::is(const SharedIdentity& other) const {
    if (mapped_device != other.mapped_device || mapped_inode != other.mapped_inode ||
        is_segment != other.is_segment) {
        return false;
    }
    bool both_known = inode != 0 && other.inode != 0;
    if (both_known && (device != other.device || inode != other.inode)) return false;
    if (!handle.empty() && !other.handle.empty()) return handle == other.handle;
    return ipc_namespace == other.ipc_namespace;
}

SharedIdentity identity_of(const MapsEntry& mapped, const Fd& path, ino_t ipc_namespace) {
    SharedIdentity identity;
    identity.mapped_device = mapped.device;
    identity.mapped_inode = mapped.inode;
    identity.is_segment = mapped.name.starts_with("/SYSV");
    if (identity.is_segment) identity.ipc_namespace = ipc_namespace;
    struct stat st {};
    if (!path || fstat(path.get(), &st) != 0) return identity;
    identity.device = st.st_dev;
    identity.inode = st.st_ino;
    identity.handle = handle_of(path);
    return identity;
}

bool may_be_written(const MapsEntry& shared) {
    return (shared.prot & PROT_WRITE) || shared.name.starts_with("/dev/zero") ||
           shared.name.starts_with("/memfd:") || shared.name.starts_with("/SYSV");
}

ino_t ipc_namespace_of(pid_t tid) {
    struct stat st {};
    return stat(fmt::format("/proc/{}/ns/ipc", tid).c_str(), &st) == 0 ? st.st_ino : 0;
}

}  // namespace gpr
