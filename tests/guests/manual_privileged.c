// What only root may do, by root where it changes nothing, and by nobody: ioperm(2), iopl,
// adjtimex(2), quotactl(2), perf_event_open(2), reboot(2), mount_setattr(2), chroot(2), sysinfo(2).
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/io.h>
#include <sys/mount.h>
#include <sys/quota.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/timex.h>

#include "manual.h"

static void refused(void) {
    struct timex time = {.modes = 0xffff};
    TRY(adjtimex((struct timex*)manual_bad_pointer()));
    manual_become_nobody();
    TRY(ioperm(0x80, 1, 1));
    TRY(ioperm(70000, 1, 1));
    TRY(iopl(3));
    TRY(iopl(4));
    TRY(adjtimex(&time));
    TRY(reboot(RB_DISABLE_CAD));
    TRY(syscall(SYS_reboot, 1, 2, 3, 0));
    TRY(quotactl(QCMD(Q_QUOTAON, USRQUOTA), "/dev/null", 0, NULL));
    TRY(quotactl(QCMD(Q_SYNC, USRQUOTA), NULL, 0, NULL));
    TRY(chroot("."));
    TRY(mount("none", ".", "tmpfs", 0, NULL));
    TRY(umount("."));
    TRY(sethostname("x", 1));
    TRY(setdomainname("x", 1));
    TRY(syscall(SYS_mount_setattr, AT_FDCWD, ".", 0, NULL, 0));
    TRY(syscall(SYS_delete_module, "none", 0));
    TRY(syscall(SYS_init_module, NULL, 0, ""));
    TRY(syscall(SYS_kexec_load, 0, 0, NULL, 0));
    TRY(syscall(SYS_swapon, "/dev/null", 0));
    TRY(syscall(SYS_acct, "absent"));
    TRY(syscall(SYS_vhangup));
    TRY(syscall(SYS_pivot_root, ".", "."));
    TRY(syscall(SYS_syslog, 5, NULL, 0));
    TRY(syscall(SYS_bpf, 0, NULL, 0));
    TRY(syscall(SYS_settimeofday, NULL, NULL));
    struct timespec now = {1, 1};
    TRY(syscall(SYS_clock_settime, 0, &now));
}

static void by_root(void) {
    struct timex time = {.modes = 0};
    TRY(adjtimex(&time) >= 0);
    SAY("tick %d", time.tick > 9000 && time.tick < 11000);
    struct sysinfo info;
    TRY(sysinfo(&info));
    SAY("%d %d", info.totalram > 0 && info.mem_unit > 0, info.procs > 0);
    TRY(sysinfo((struct sysinfo*)manual_bad_pointer()));
    TRY(quotactl(QCMD(Q_GETFMT, USRQUOTA), "/absent", 0, (char*)&info));
    TRY(syscall(SYS_reboot, 1, 2, 3, 0));
    mkdir("root", 0755);
    TRY(unshare(CLONE_NEWNS));
    TRY(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL));
    TRY(mount("none", "root", "tmpfs", 0, "size=1m"));
    struct mount_attr {
        uint64_t set, clear, propagation, userns;
    } attributes = {1 /* MOUNT_ATTR_RDONLY */, 0, 0, 0};
    TRY(syscall(SYS_mount_setattr, AT_FDCWD, "root", 0, &attributes, 8));
    TRY(syscall(SYS_mount_setattr, AT_FDCWD, "root", 0, manual_bad_pointer(), sizeof attributes));
    TRY(syscall(SYS_mount_setattr, AT_FDCWD, "absent", 0, &attributes, sizeof attributes));
    TRY(syscall(SYS_mount_setattr, AT_FDCWD, "root", 0x1, &attributes, sizeof attributes));
    TRY(syscall(SYS_mount_setattr, AT_FDCWD, "root", 0, &attributes, sizeof attributes));
    TRY(open("root/new", O_CREAT | O_WRONLY, 0600));
    attributes = (struct mount_attr){0, 1, 0, 0};
    TRY(syscall(SYS_mount_setattr, AT_FDCWD, "root", 0, &attributes, sizeof attributes));
    TRY(open("root/new", O_CREAT | O_WRONLY, 0600) >= 0);
    TRY(chroot((char*)manual_bad_pointer()));
    TRY(chroot("absent"));
    TRY(chroot("root"));
    TRY(chdir("/"));
    TRY(open("/new", O_RDONLY) >= 0);
    TRY(open("/proc/self/status", O_RDONLY));
    char here[4096];
    SAY("%s", getcwd(here, sizeof here));
}

static void counters(void) {
    struct perf_event_attr event;
    memset(&event, 0, sizeof event);
    event.size = sizeof event;
    event.type = 77777;
    TRY(syscall(SYS_perf_event_open, manual_bad_pointer(), 0, -1, -1, 0));
    TRY(syscall(SYS_perf_event_open, &event, 0, -1, -1, 0x100));
    TRY(syscall(SYS_perf_event_open, &event, 0, -1, 99, 0));
    TRY(syscall(SYS_perf_event_open, &event, -1, -1, -1, 0));
    event.size = 5;
    TRY(syscall(SYS_perf_event_open, &event, 0, -1, -1, 0));
}

int main(void) {
    manual_begin();
    manual_in_child("refused", refused);
    manual_in_child("by root", by_root);
    manual_in_child("counters", counters);
    return guest_passed();
}
