// Calls about files, sockets, other descriptors and System V's objects with pointers that lead
// nowhere. Where libm is split off, they are made at home.
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <mqueue.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "bad_pointers.h"

static void files(void) {
    long file = open("data", O_RDWR | O_CREAT, 0600), folder = open(".", O_RDONLY);
    long tty = open("/dev/ptmx", O_RDWR), zero = open("/dev/zero", O_RDWR), v = (long)good;
    CHECK(file >= 0 && folder >= 0 && tty >= 0 && zero >= 0);
    CHECK_EQ(write((int)file, good, PAGE), PAGE);
    int ends[2];
    CHECK_EQ(pipe2(ends, O_NONBLOCK), 0);
    CHECK_EQ(write(ends[1], good, 100), 100);
    struct iovec* bad_base = page(PROT_READ | PROT_WRITE, 1);
    *bad_base = (struct iovec){(void*)8, 10};
    long name = here("data"), vb = (long)bad_base, cwd = AT_FDCWD;
    const struct row rows[] = {
        OUT(read, zero, BAD, 64),
        OUT(pread64, file, BAD, 64, 0),
        IN(pwrite64, file, BAD, 64, 0),
        IN(write, zero, BAD, 64),
        IN(write, ends[1], BAD, 64),
        OUT(read, ends[0], BAD, 64),
        IN(readv, file, BAD, 1),
        IN(writev, file, BAD, 1),
        IN(readv, file, vb, 1),
        IN(preadv, file, BAD, 1, 0, 0),
        IN(pwritev2, file, BAD, 1, 0, 0, 0),
        IN(vmsplice, ends[1], BAD, 1, 0),
        STR(open, BAD, O_RDONLY),
        STR(openat, cwd, BAD, O_RDONLY),
        STR(creat, BAD, 0600),
        STR(stat, BAD, v),
        OUT(stat, name, BAD),
        OUT(fstat, file, BAD),
        STR(lstat, BAD, v),
        OUT(newfstatat, cwd, name, BAD, 0),
        STR(newfstatat, cwd, BAD, v, 0),
        STR(statx, cwd, BAD, 0, 0xfff, v),
        OUT(statx, cwd, name, 0, 0xfff, BAD),
        STR(statfs, BAD, v),
        OUT(statfs, name, BAD),
        OUT(fstatfs, file, BAD),
        STR(access, BAD, 0),
        STR(faccessat, cwd, BAD, 0),
        STR(faccessat2, cwd, BAD, 0, 0),
        STR(truncate, BAD, 10),
        OUT(getdents64, folder, BAD, 512),
        OUT(getdents, folder, BAD, 512),
        OUT(getcwd, BAD, 400),
        STR(chdir, BAD),
        STR(chroot, BAD),
        STR(rename, BAD, name),
        STR(rename, name, BAD),
        STR(renameat2, cwd, BAD, cwd, name, 0),
        STR(mkdir, BAD, 0700),
        STR(rmdir, BAD),
        STR(link, BAD, name),
        STR(link, name, BAD),
        STR(unlink, BAD),
        STR(unlinkat, cwd, BAD, 0),
        STR(symlink, BAD, name),
        STR(symlink, name, BAD),
        STR(readlink, BAD, v, 100),
        OUT(readlink, here("/proc/self/exe"), BAD, 100),
        STR(chmod, BAD, 0600),
        STR(fchmodat, cwd, BAD, 0600),
        NEW('s', fchmodat2, cwd, BAD, 0600, 0),
        STR(chown, BAD, -1, -1),
        STR(lchown, BAD, -1, -1),
        STR(fchownat, cwd, BAD, -1, -1, 0),
        STR(utime, BAD, v),
        IN(utime, name, BAD),
        STR(utimes, BAD, v),
        IN(utimes, name, BAD),
        STR(futimesat, cwd, BAD, v),
        STR(utimensat, cwd, BAD, v, 0),
        IN(utimensat, cwd, name, BAD),
        STR(mknod, BAD, S_IFIFO | 0600),
        STR(mknodat, cwd, BAD, S_IFIFO | 0600, 0),
        STR(setxattr, BAD, name, v, 1, 0),
        STR(setxattr, name, BAD, v, 1, 0),
        IN(setxattr, name, here("user.gpr"), BAD, 2, 0),
        STR(getxattr, BAD, name, v, 10),
        STR(getxattr, name, BAD, v, 10),
        STR(listxattr, BAD, v, 10),
        STR(removexattr, name, BAD),
        STR(openat2, cwd, BAD, v, 24),
        IN(openat2, cwd, name, BAD, 24),
        OUT(name_to_handle_at, cwd, name, BAD, v, 0),
        OUT(pipe, BAD),
        OUT(pipe2, BAD, 0),
        OUT(ioctl, ends[0], FIONREAD, BAD),
        IN(ioctl, file, FIONBIO, BAD),
        OUT(ioctl, tty, TIOCGWINSZ, BAD),
        IN(ioctl, tty, TIOCSWINSZ, BAD),
        IN(fcntl, file, F_SETLK, BAD),
        OUT(fcntl, file, F_GETLK, BAD),
        IN(fcntl, file, F_SETOWN_EX, BAD),
        OUT(fcntl, file, F_GETOWN_EX, BAD),
        OUT(sendfile, ends[1], file, BAD, 10),
        OUT(splice, file, BAD, ends[1], 0, 10, 0),
        OUT(copy_file_range, file, BAD, file, 0, 0, 0),
        IN(select, 1, BAD, 0, 0, v),
        OUT(select, 1, v, 0, 0, BAD),
        IN(pselect6, 1, BAD, 0, 0, v, 0),
        IN(pselect6, 1, 0, 0, 0, BAD, 0),
        IN(pselect6, 1, 0, 0, 0, v, BAD),
        OUT(poll, BAD, 1, 0),
        OUT(ppoll, BAD, 1, v, 0, 8),
        IN(ppoll, v, 0, BAD, 0, 8),
        IN(ppoll, v, 0, v, BAD, 8),
        STR(memfd_create, BAD, 0),
        STR(mount, BAD, v, v, 0, 0),
        STR(mount, name, BAD, v, 0, 0),
        STR(mount, name, name, BAD, 0, 0),
        STR(umount2, BAD, 0),
        STR(swapon, BAD, 0),
        STR(swapoff, BAD),
        STR(pivot_root, BAD, name),
        STR(acct, BAD),
        STR(open_tree, cwd, BAD, 0),
        STR(fspick, cwd, BAD, 0),
        STR(fsopen, BAD, 0),
        IN(mount_setattr, cwd, name, 0, BAD, 32),
        NEW('i', cachestat, file, BAD, v, 0),
        NEW('o', cachestat, file, v, BAD, 0),
        NEW('i', statmount, BAD, v, 100, 0),
        NEW('i', listmount, BAD, v, 10, 0),
        IN(landlock_create_ruleset, BAD, 8, 0),
        STR(delete_module, BAD, 0),
    };
    TRY_ROWS(rows);
    for (int fd = (int)file; fd < 400; fd++) close(fd);
}

static void sockets(void) {
    int pair[2], v_size = 16;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair), 0);
    for (int i = 0; i < 40; i++) CHECK_EQ(send(pair[1], "hello", 5, 0), 5);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_un address = {AF_UNIX, "listener"};
    CHECK_EQ(bind(listener, (void*)&address, sizeof address), 0);
    CHECK_EQ(listen(listener, 9), 0);
    for (int i = 0; i < 9; i++) {
        int client = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        CHECK_EQ(connect(client, (void*)&address, sizeof address), 0);
    }
    char* size_at = page(PROT_READ | PROT_WRITE, 1);
    memcpy(size_at, &v_size, 4);
    struct iovec* one = page(PROT_READ | PROT_WRITE, 1);
    struct msghdr* header = (void*)(one + 8);
    *one = (struct iovec){(void*)8, 4};
    header->msg_iov = one, header->msg_iovlen = 1;
    struct msghdr* named = header + 1;
    named->msg_name = (void*)8, named->msg_namelen = 16;
    struct msghdr* with = header + 2;
    with->msg_control = (void*)8, with->msg_controllen = 64;
    long in = pair[0], out = pair[1], v = (long)good, size = (long)size_at;
    const struct row rows[] = {
        IN(bind, in, BAD, 16),
        IN(connect, in, BAD, 16),
        OUT(accept, listener, BAD, size),
        OUT(accept4, listener, v, BAD, 0),
        OUT(getsockname, in, BAD, size),
        OUT(getsockname, in, v, BAD),
        OUT(getpeername, in, BAD, size),
        OUT(getpeername, in, v, BAD),
        OUT(socketpair, AF_UNIX, SOCK_STREAM, 0, BAD),
        IN(setsockopt, in, 1, SO_RCVBUF, BAD, 4),
        OUT(getsockopt, in, 1, SO_RCVBUF, BAD, size),
        OUT(getsockopt, in, 1, SO_RCVBUF, v, BAD),
        IN(sendto, out, BAD, 10, 0, 0, 0),
        IN(sendto, out, v, 10, 0, BAD, 16),
        OUT(recvfrom, in, BAD, 10, 0, 0, 0),
        OUT(recvfrom, in, v, 10, 0, BAD, size),
        OUT(recvfrom, in, v, 10, 0, v, BAD),
        IN(sendmsg, out, BAD, 0),
        IN(recvmsg, in, BAD, 0),
        IN(sendmsg, out, (long)header, 0),
        OUT(recvmsg, in, (long)header, 0),
        IN(sendmsg, out, (long)named, 0),
        IN(sendmsg, out, (long)with, 0),
        OUT(recvmmsg, in, BAD, 1, MSG_DONTWAIT, 0),
        IN(recvmmsg, in, v, 1, MSG_DONTWAIT, BAD),
        IN(sendmmsg, out, BAD, 1, 0),
    };
    TRY_ROWS(rows);
    for (int fd = pair[0]; fd < 400; fd++) close(fd);
}

static void descriptors(void) {
    long poller = epoll_create1(0), timer = timerfd_create(CLOCK_MONOTONIC, 0), v = (long)good;
    long watch = inotify_init1(0), name = here(".");
    int ends[2], later[2];
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(pipe(later), 0);
    struct epoll_event event = {EPOLLOUT, {0}};
    CHECK_EQ(epoll_ctl((int)poller, EPOLL_CTL_ADD, ends[1], &event), 0);
    mqd_t queue = mq_open("/gpr-bad-pointers", O_CREAT | O_RDWR | O_NONBLOCK, 0600, NULL);
    CHECK(queue >= 0);
    CHECK_EQ(mq_unlink("/gpr-bad-pointers"), 0);
    struct mq_attr attributes;
    CHECK_EQ(mq_getattr(queue, &attributes), 0);
    aio_context_t ring = 0;
    CHECK_EQ(syscall(SYS_io_setup, 4, &ring), 0);
    long most = attributes.mq_msgsize;
    for (int i = 0; i < 8; i++) CHECK_EQ(mq_send(queue, "x", 1, 0), 0);
    const struct row rows[] = {
        IN(epoll_ctl, poller, EPOLL_CTL_ADD, later[1], BAD),
        OUT(epoll_wait, poller, BAD, 1, 0),
        IN(epoll_pwait, poller, v, 1, 0, BAD, 8),
        IN(epoll_pwait2, poller, v, 1, BAD, 0, 8),
        IN(timerfd_settime, timer, 0, BAD, 0),
        OUT(timerfd_settime, timer, 0, v, BAD),
        OUT(timerfd_gettime, timer, BAD),
        IN(signalfd4, -1, BAD, 8, 0),
        IN(signalfd, -1, BAD, 8),
        STR(inotify_add_watch, watch, BAD, IN_CREATE),
        STR(mq_open, BAD, O_RDONLY, 0, 0),
        STR(mq_unlink, BAD),
        IN(mq_timedsend, queue, BAD, 10, 0, 0),
        IN(mq_timedsend, queue, v, 1, 0, BAD),
        OUT(mq_timedreceive, queue, BAD, most, 0, 0),
        OUT(mq_timedreceive, queue, v, 1, BAD, 0),
        IN(mq_timedreceive, queue, v, most, 0, BAD),
        IN(mq_notify, queue, BAD),
        IN(mq_getsetattr, queue, BAD, 0),
        OUT(mq_getsetattr, queue, 0, BAD),
        OUT(io_setup, 1, BAD),
        OUT(io_getevents, (long)ring, 0, 1, BAD, 0),
        IN(io_getevents, (long)ring, 1, 1, v, BAD),
        IN(io_submit, (long)ring, 1, BAD),
        IN(io_cancel, (long)ring, BAD, v),
        OUT(io_uring_setup, 1, BAD),
        STR(inotify_add_watch, watch, name, 0),
    };
    TRY_ROWS(rows);
    for (int fd = (int)poller; fd < 400; fd++) close(fd);
    CHECK_EQ(syscall(SYS_io_destroy, ring), 0);
}

static void ipc(void) {
    int memory = shmget(IPC_PRIVATE, PAGE, IPC_CREAT | 0600), set = semget(IPC_PRIVATE, 1, 0600);
    int queue = msgget(IPC_PRIVATE, 0600);
    CHECK(memory >= 0 && set >= 0 && queue >= 0);
    struct {
        long type;
        char text[8];
    } message = {1, "hello"};
    for (int i = 0; i < 7; i++) CHECK_EQ(msgsnd(queue, &message, 8, 0), 0);
    long v = (long)good;
    const struct row rows[] = {
        OUT(shmctl, memory, IPC_STAT, BAD),
        IN(shmctl, memory, IPC_SET, BAD),
        OUT(semctl, set, 0, IPC_STAT, BAD),
        IN(semop, set, BAD, 1),
        IN(semtimedop, set, BAD, 1, v),
        IN(semctl, set, 0, SETALL, BAD),
        OUT(semctl, set, 0, GETALL, BAD),
        OUT(msgctl, queue, IPC_STAT, BAD),
        IN(msgctl, queue, IPC_SET, BAD),
        IN(msgsnd, queue, BAD, 8, IPC_NOWAIT),
        OUT(msgrcv, queue, BAD, 8, 0, IPC_NOWAIT),
    };
    TRY_ROWS(rows);
    CHECK_EQ(shmctl(memory, IPC_RMID, NULL), 0);
    CHECK_EQ(semctl(set, 0, IPC_RMID), 0);
    CHECK_EQ(msgctl(queue, IPC_RMID, NULL), 0);
}

int main(void) {
    map_bad_places();
    files();
    sockets();
    descriptors();
    ipc();
    check_bad_places();
    return guest_passed();
}
