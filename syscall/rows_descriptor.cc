#include "syscall/rows.h"

namespace gpr {
using namespace rows;
namespace {

constexpr const char* mixed_set =
    "fd_set has no room for the acceptor's own numbers, only for names of its files";
constexpr const char* mixed_pair = "refused between nodes as between file systems that cannot";
constexpr const char* naming =
    "a file of the acceptor gets a number of home; not the other way round";

// clang-format off
constexpr Row table[] = {
    {0, "read", fd_owner, full, blocks | fd_first, {fd, out_n(2), num}},
    {1, "write", fd_owner, full, blocks | fd_first, {fd, in_n(2), num}},
    {3, "close", fd_owner, full, opens | fd_first, {fd}},
    {5, "fstat", fd_owner, full, fd_first, {fd, out(stat_size)}},
    {7, "poll", home, full, blocks | Trait::polls,
     {narrow(inout_n(1, pollfd_size, Returned::always)), num, num}},
    {8, "lseek", fd_owner, full, fd_first, {fd, num, num}},
    {16, "ioctl", fd_owner, partial, blocks | fd_first, {fd, num, ioctl_arg},
     "requests outside the request table use the program's memory through coherence"},
    {17, "pread64", fd_owner, full, blocks, {fd, out_n(2), num, num}},
    {18, "pwrite64", fd_owner, full, blocks, {fd, in_n(2), num, num}},
    {19, "readv", fd_owner, full, blocks | fd_first, {fd, iovec_out(2), num}},
    {20, "writev", fd_owner, full, blocks | fd_first, {fd, iovec_in(2), num}},
    {22, "pipe", home, full, opens | by_rule, {out(8)}},
    {23, "select", home, partial, blocks, {num, fd_set(0), fd_set(0), fd_set(0), time_left},
     mixed_set},
    {32, "dup", fd_owner, full, opens | fd_first, {fd}},
    {33, "dup2", fd_owner, partial, opens, {fd, fd}, naming},
    {40, "sendfile", fd_owner, partial, blocks, {fd, fd, offset, num}, mixed_pair},
    {72, "fcntl", fd_owner, full, blocks | opens | fd_first, {fd, num, fcntl_arg}},
    {73, "flock", fd_owner, full, blocks, {fd, num}},
    {74, "fsync", fd_owner, full, fd_first, {fd}},
    {75, "fdatasync", fd_owner, full, fd_first, {fd}},
    {77, "ftruncate", fd_owner, full, notify, {fd, num}},
    {78, "getdents", fd_owner, full, fd_first, {fd, narrow(out_n(2)), num}},
    {91, "fchmod", fd_owner, full, fd_first, {fd, num}},
    {93, "fchown", fd_owner, full, fd_first, {fd, num, num}},
    {138, "fstatfs", fd_owner, full, fd_first, {fd, out(statfs_size)}},
    {187, "readahead", fd_owner, full, plain, {fd, num, num}},
    {190, "fsetxattr", fd_owner, full, plain, {fd, text, in_n(3), num, num}},
    {193, "fgetxattr", fd_owner, full, plain, {fd, text, out_n(3), num}},
    {196, "flistxattr", fd_owner, full, plain, {fd, out_n(2), num}},
    {199, "fremovexattr", fd_owner, full, plain, {fd, text}},
    {206, "io_setup", home, partial, maps, {num, inout(8)},
     "the ring is used at home; requests run on home's memory"},
    {207, "io_destroy", home, full, maps, {num}},
    {208, "io_getevents", home, full, blocks,
     {num, num, num, out_n(2, io_event_size), in(timespec_size)}},
    {209, "io_submit", home, partial, plain, {num, num, raw},
     "buffers are pinned at home while a request runs"},
    {210, "io_cancel", home, full, plain, {num, raw, out(io_event_size)}},
    {213, "epoll_create", home, full, opens | by_rule, {num}},
    {217, "getdents64", fd_owner, full, fd_first, {fd, narrow(out_n(2)), num}},
    {221, "fadvise64", fd_owner, full, plain, {fd, num, num, num}},
    {232, "epoll_wait", fd_owner, full, blocks,
     {fd, narrow(out_n(2, epoll_event_size)), num, num}},
    {233, "epoll_ctl", fd_owner, partial, plain, {fd, num, fd, in(epoll_event_size)},
     "a child of fork does not see files of the acceptor in its parent's"},
    {253, "inotify_init", home, full, opens | by_rule, {}},
    {254, "inotify_add_watch", fd_owner, full, plain, {fd, text, num}},
    {255, "inotify_rm_watch", fd_owner, full, plain, {fd, num}},
    {270, "pselect6", home, partial, blocks,
     {num, fd_set(0), fd_set(0), fd_set(0), time_left, sigmask_pair}, mixed_set},
    {271, "ppoll", home, full, blocks | Trait::polls,
     {narrow(inout_n(1, pollfd_size, Returned::always)), num, time_left, in(sigset_size), num}},
    {275, "splice", fd_owner, partial, blocks, {fd, offset, fd, offset, num, num}, mixed_pair},
    {276, "tee", fd_owner, partial, blocks, {fd, fd, num, num}, mixed_pair},
    {277, "sync_file_range", fd_owner, full, plain, {fd, num, num, num}},
    {278, "vmsplice", fd_owner, partial, blocks, {fd, raw, num, num},
     "gifted pages are copied into home's memory first"},
    {281, "epoll_pwait", fd_owner, full, blocks,
     {fd, narrow(out_n(2, epoll_event_size)), num, num, in(sigset_size), num}},
    {284, "eventfd", home, full, opens | by_rule, {num}},
    {285, "fallocate", fd_owner, full, plain, {fd, num, num, num}},
    {290, "eventfd2", home, full, opens | by_rule, {num, num}},
    {291, "epoll_create1", home, full, opens | by_rule, {num}},
    {292, "dup3", fd_owner, partial, opens, {fd, fd, num}, naming},
    {293, "pipe2", home, full, opens | by_rule, {out(8), num}},
    {294, "inotify_init1", home, full, opens | by_rule, {num}},
    {295, "preadv", fd_owner, full, blocks, {fd, iovec_out(2), num, num, num}},
    {296, "pwritev", fd_owner, full, blocks, {fd, iovec_in(2), num, num, num}},
    {306, "syncfs", fd_owner, full, fd_first, {fd}},
    {326, "copy_file_range", fd_owner, partial, blocks, {fd, offset, fd, offset, num, num},
     mixed_pair},
    {327, "preadv2", fd_owner, full, blocks, {fd, iovec_out(2), num, num, num, num}},
    {328, "pwritev2", fd_owner, full, blocks, {fd, iovec_in(2), num, num, num, num}},
    {333, "io_pgetevents", home, full, blocks,
     {num, num, num, out_n(2, io_event_size), in(timespec_size), sigmask_pair}},
    {425, "io_uring_setup", home, partial, opens | by_rule,
     {num, inout(io_uring_params_size)},
     "the rings are used at home; buffers cannot be registered there"},
    {426, "io_uring_enter", fd_owner, partial, blocks, {fd, num, num, num, raw, num},
     "requests run on home's memory"},
    {427, "io_uring_register", fd_owner, partial, plain, {fd, num, raw, num},
     "registering buffers is refused (EOPNOTSUPP), unless a rule makes the ring the acceptor's"},
    {436, "close_range", special, partial, opens, {num, num, num}, "applies to every node"},
    {441, "epoll_pwait2", fd_owner, full, blocks,
     {fd, narrow(out_n(2, epoll_event_size)), num, in(timespec_size), in(sigset_size), num}},
    {451, "cachestat", fd_owner, full, plain, {fd, in(16), out(40), num}},
};
// clang-format on

}  // namespace

std::span<const Row> descriptor_rows() { return table; }

}  // namespace gpr
