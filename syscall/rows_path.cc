#include "syscall/rows.h"

namespace gpr {
using namespace rows;
namespace {

// With a directory descriptor of the acceptor these run there; AT_FDCWD is negative, so they go
// home.
constexpr const char* own_directory =
    "an absolute path with a directory fd of the acceptor is "
    "looked up in the acceptor's empty root";
constexpr const char* mounts = "changes home's mount namespace; the acceptor's root stays empty";

// clang-format off
constexpr Row table[] = {
    {2, "open", home, full, blocks | opens, {path, num, num}},
    {4, "stat", home, full, plain, {path, out(stat_size)}},
    {6, "lstat", home, full, plain, {path, out(stat_size)}},
    {21, "access", home, full, plain, {path, num}},
    {76, "truncate", home, full, notify | modifies, {path, num}, "",
     {there::as_placed, here::truncate}},
    {79, "getcwd", home, full, plain, {out_n(1), num}, "", {},
     {.fills_most = 4096}},
    {80, "chdir", home, full, plain, {text}},
    {81, "fchdir", home, full, plain, {fd}},
    {82, "rename", home, full, plain, {path, path}},
    {83, "mkdir", home, full, plain, {path, num}},
    {84, "rmdir", home, full, plain, {path}},
    {85, "creat", home, full, blocks | opens, {path, num}},
    {86, "link", home, full, plain, {path, path}},
    {87, "unlink", home, full, plain, {path}},
    {88, "symlink", home, full, plain, {text, path}},
    {89, "readlink", home, full, plain, {path, narrow(out_n(2)), num}},
    {90, "chmod", home, full, plain, {path, num}},
    {92, "chown", home, full, plain, {path, num, num}},
    {94, "lchown", home, full, plain, {path, num, num}},
    {95, "umask", home, full, plain, {num}},
    {132, "utime", home, full, plain, {path, in(16)}},
    {133, "mknod", home, full, plain, {path, num, num}},
    {136, "ustat", home, full, plain, {num, out(ustat_size)}},
    {137, "statfs", home, full, plain, {path, out(statfs_size)}},
    {139, "sysfs", home, full, plain, {num, raw, raw}},
    {155, "pivot_root", home, partial, plain, {text, text}, mounts},
    {161, "chroot", home, full, plain, {text}},
    {162, "sync", home, full, plain, {}},
    {165, "mount", home, partial, plain, {text, text, text, num, raw}, mounts},
    {166, "umount2", home, partial, plain, {text, num}, mounts},
    {179, "quotactl", home, full, plain, {num, text, num, raw}},
    {188, "setxattr", home, full, plain, {path, text, in_n(3), num, num}},
    {189, "lsetxattr", home, full, plain, {path, text, in_n(3), num, num}},
    {191, "getxattr", home, full, plain, {path, text, out_n(3), num}},
    {192, "lgetxattr", home, full, plain, {path, text, out_n(3), num}},
    {194, "listxattr", home, full, plain, {path, out_n(2), num}},
    {195, "llistxattr", home, full, plain, {path, out_n(2), num}},
    {197, "removexattr", home, full, plain, {path, text}},
    {198, "lremovexattr", home, full, plain, {path, text}},
    {235, "utimes", home, full, plain, {path, in(32)}},
    {257, "openat", fd_owner, full, blocks | opens, {fd, path, num, num}, own_directory},
    {258, "mkdirat", home, full, plain, {fd, path, num}},
    {259, "mknodat", home, full, plain, {fd, path, num, num}},
    {260, "fchownat", home, full, plain, {fd, path, num, num, num}},
    {261, "futimesat", home, full, plain, {fd, path, in(32)}},
    {262, "newfstatat", fd_owner, full, plain, {fd, path, out(stat_size), num}, own_directory, {},
     {.on_delegated = OnDelegated::status_at}},
    {263, "unlinkat", home, full, plain, {fd, path, num}},
    {264, "renameat", home, full, plain, {fd, path, fd, path}},
    {265, "linkat", home, full, plain, {fd, path, fd, path, num}},
    {266, "symlinkat", home, full, plain, {text, fd, path}},
    {267, "readlinkat", fd_owner, full, plain, {fd, path, narrow(out_n(3)), num}, own_directory},
    {268, "fchmodat", home, full, plain, {fd, path, num}},
    {269, "faccessat", fd_owner, full, plain, {fd, path, num}, own_directory},
    {280, "utimensat", home, full, plain, {fd, path, in(32), num}},
    {300, "fanotify_init", home, full, opens | notify, {num, num}},
    {301, "fanotify_mark", home, full, plain, {fd, num, num, fd, text}},
    {303, "name_to_handle_at", home, full, plain, {fd, path, raw, raw, num}},
    {304, "open_by_handle_at", home, full, opens, {fd, raw, num}},
    {316, "renameat2", home, full, plain, {fd, path, fd, path, num}},
    {332, "statx", fd_owner, full, plain, {fd, path, num, num, out(statx_size)}, own_directory},
    {428, "open_tree", home, partial, opens, {fd, text, num}, mounts},
    {429, "move_mount", home, partial, plain, {fd, text, fd, text, num}, mounts},
    {430, "fsopen", home, partial, opens, {text, num}, mounts},
    {431, "fsconfig", home, partial, plain, {fd, num, text, raw, num}, mounts},
    {432, "fsmount", home, partial, opens, {fd, num, num}, mounts},
    {433, "fspick", home, partial, opens, {fd, text, num}, mounts},
    {437, "openat2", fd_owner, full, blocks | opens, {fd, path, in_n(3), num}, own_directory},
    {439, "faccessat2", fd_owner, full, plain, {fd, path, num, num}, own_directory},
    {442, "mount_setattr", home, partial, plain, {fd, text, num, in_n(4), num}, mounts},
    {443, "quotactl_fd", home, full, plain, {fd, num, num, raw}},
    {452, "fchmodat2", home, full, plain, {fd, path, num, num}},
    {457, "statmount", home, full, plain, {raw, raw, num, num}},
    {458, "listmount", home, full, plain, {raw, out_n(2, 8), num, num}},
    {463, "setxattrat", home, full, plain, {fd, path, num, text, raw, num}},
    {464, "getxattrat", home, full, plain, {fd, path, num, text, raw, num}},
    {465, "listxattrat", home, full, plain, {fd, path, num, out_n(4), num}},
    {466, "removexattrat", home, full, plain, {fd, path, num, text}},
    {467, "open_tree_attr", home, partial, opens, {fd, text, num, in_n(4), num}, mounts},
    {468, "file_getattr", home, full, plain,
     {fd, path, inout_n(3, 1, Returned::success), num, num}},
    {469, "file_setattr", home, full, plain, {fd, path, in_n(3), num, num}},
    {470, "listns", home, full, plain, {raw, out_n(2, 8), num, num}},
};
// clang-format on

}  // namespace

std::span<const Row> path_rows() { return table; }

}  // namespace gpr
