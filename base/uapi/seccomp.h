// <linux/seccomp.h>, and newer features that the headers of Linux 6.1 lack.
#pragma once

#include <linux/ioctl.h>
#include <linux/seccomp.h>
#include <linux/types.h>

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV  // 5.19
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

// 6.6: the listener's fd wakes the answering side on the CPU of the caller.
#ifndef SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif
#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS  // the flags are the argument itself, not a pointer
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif
