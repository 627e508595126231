// <linux/userfaultfd.h>, and newer features (up to Linux 6.8) that the headers of Linux 6.1 lack.
// Numbers and layouts are the kernel's ABI. Whether the running kernel has them is probed
// (base/kernel_features.h), never assumed.
#pragma once

#include <linux/ioctl.h>
#include <linux/types.h>
#include <linux/userfaultfd.h>

#ifndef USERFAULTFD_IOC_NEW  // ioctl of /dev/userfaultfd: a new userfaultfd; argument O_* flags
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif

// 6.4: write-protection also applies to pages that are not there yet.
#ifndef UFFD_FEATURE_WP_UNPOPULATED
#define UFFD_FEATURE_WP_UNPOPULATED (1 << 13)
#endif
#ifndef UFFD_FEATURE_POISON  // 6.6: a page that gives SIGBUS at every access
#define UFFD_FEATURE_POISON (1 << 14)
#endif
#ifndef UFFD_FEATURE_WP_ASYNC  // 6.7: the kernel resolves write-protect faults: dirty tracking
#define UFFD_FEATURE_WP_ASYNC (1 << 15)
#endif
#ifndef UFFD_FEATURE_MOVE  // 6.8: moves pages without copying
#define UFFD_FEATURE_MOVE (1 << 16)
#endif

#ifndef UFFDIO_CONTINUE_MODE_WP  // 6.4
#define UFFDIO_CONTINUE_MODE_WP ((__u64)1 << 1)
#endif

#ifndef UFFDIO_MOVE
struct uffdio_move {
    __u64 dst;
    __u64 src;
    __u64 len;
#define UFFDIO_MOVE_MODE_DONTWAKE ((__u64)1 << 0)
#define UFFDIO_MOVE_MODE_ALLOW_SRC_HOLES ((__u64)1 << 1)
    __u64 mode;
    __s64 move;  // written by the ioctl: bytes moved, or -errno; 0 if nothing was tried
};
#define _UFFDIO_MOVE (0x05)
#define UFFDIO_MOVE _IOWR(UFFDIO, _UFFDIO_MOVE, struct uffdio_move)
#endif

#ifndef UFFDIO_POISON
struct uffdio_poison {
    struct uffdio_range range;
#define UFFDIO_POISON_MODE_DONTWAKE ((__u64)1 << 0)
    __u64 mode;
    __s64 updated;  // written by the ioctl: bytes poisoned, or -errno
};
#define _UFFDIO_POISON (0x08)
#define UFFDIO_POISON _IOWR(UFFDIO, _UFFDIO_POISON, struct uffdio_poison)
#endif
