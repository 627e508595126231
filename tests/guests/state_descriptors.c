// Descriptors of every kind keep their offsets, flags, contents and settings.
#include <dirent.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <termios.h>

#include "state.h"

enum { PIPE_SIZE = 1 << 18, HIGH = 300 };

static int file_with(const char* text) {
    char name[] = "file-XXXXXX";
    int fd = mkstemp(name);
    if (fd >= 0 && unlink(name) == 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text))
        return fd;
    return -1;
}
static void holds(int fd, long offset, const char* text) {
    char buffer[64] = {0};
    EXPECT_EQ(pread(fd, buffer, strlen(text), offset), strlen(text));
    EXPECT(strcmp(buffer, text) == 0);
}
static int offset_fd;
static void set_offset(void) {
    EXPECT((offset_fd = file_with("0123456789")) >= 0);
    EXPECT_EQ(lseek(offset_fd, 4, SEEK_SET), 4);
}
static void has_offset(void) {
    char two[2];
    EXPECT_EQ(lseek(offset_fd, 0, SEEK_CUR), 4);
    EXPECT_EQ(read(offset_fd, two, 2), 2);
    EXPECT(memcmp(two, "45", 2) == 0);
    EXPECT_EQ(lseek(offset_fd, 0, SEEK_END), 10);
}

static int first_fd, copy_fd;
static void set_shared_offset(void) {
    EXPECT((first_fd = file_with("0123456789")) >= 0);
    copy_fd = dup(first_fd);
    EXPECT_EQ(lseek(first_fd, 7, SEEK_SET), 7);
}
static void shares_offset(void) {
    EXPECT_EQ(lseek(copy_fd, 0, SEEK_CUR), 7);
    EXPECT_EQ(lseek(copy_fd, -2, SEEK_CUR), 5);
    EXPECT_EQ(lseek(first_fd, 0, SEEK_CUR), 5);
    EXPECT_EQ(syscall(SYS_kcmp, getpid(), getpid(), 0, first_fd, copy_fd), 0);  // KCMP_FILE
}

static int append_fd;
static void set_append(void) {
    EXPECT((append_fd = file_with("begin")) >= 0);
    EXPECT_EQ(fcntl(append_fd, F_SETFL, O_APPEND | O_NOATIME), 0);
    EXPECT_EQ(lseek(append_fd, 0, SEEK_SET), 0);
}
static void appends(void) {
    EXPECT_EQ(fcntl(append_fd, F_GETFL) & (O_ACCMODE | O_APPEND | O_NOATIME | O_NONBLOCK),
              O_RDWR | O_APPEND | O_NOATIME);
    EXPECT_EQ(write(append_fd, "-end", 4), 4);
    holds(append_fd, 0, "begin-end");
}

static int sync_fd, read_only_fd, write_only_fd, path_fd;
static void set_open_flags(void) {
    sync_fd = open("flags", O_CREAT | O_RDWR | O_DSYNC | O_CLOEXEC, 0600);
    read_only_fd = open("flags", O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    write_only_fd = open("flags", O_WRONLY | O_SYNC);
    path_fd = open("flags", O_PATH | O_CLOEXEC);
    EXPECT(sync_fd >= 0 && read_only_fd >= 0 && write_only_fd >= 0 && path_fd >= 0);
    EXPECT_EQ(unlink("flags"), 0);
}
static void has_open_flags(void) {
    const int all = O_ACCMODE | O_SYNC | O_NONBLOCK | O_APPEND | O_NOFOLLOW | O_PATH;
    EXPECT_EQ(fcntl(sync_fd, F_GETFL) & all, O_RDWR | O_DSYNC);
    EXPECT_EQ(fcntl(read_only_fd, F_GETFL) & all, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    EXPECT_EQ(fcntl(write_only_fd, F_GETFL) & all, O_WRONLY | O_SYNC);
    EXPECT_ERRNO(write(read_only_fd, "x", 1), EBADF);
}
static void has_path_only(void) {
    struct stat status;
    char byte;
    EXPECT_EQ(fcntl(path_fd, F_GETFL) & O_PATH, O_PATH);
    EXPECT_ERRNO(read(path_fd, &byte, 1), EBADF);
    EXPECT_EQ(fstat(path_fd, &status), 0);
    EXPECT_EQ(status.st_nlink, 0);
}
static int kept_fd, closed_fd, high_fd;
static void set_numbers(void) {
    kept_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    closed_fd = open("/dev/null", O_RDWR);
    EXPECT_EQ(high_fd = dup2(kept_fd, HIGH), HIGH);
}
static void has_close_on_exec(void) {
    EXPECT_EQ(fcntl(kept_fd, F_GETFD), FD_CLOEXEC);
    EXPECT_EQ(fcntl(high_fd, F_GETFD), 0);
}
static void has_numbers(void) {
    EXPECT_EQ(fcntl(HIGH - 1, F_GETFD), -1);
    EXPECT_EQ(fcntl(HIGH + 1, F_GETFD), -1);
    EXPECT_EQ(fcntl(kept_fd, F_DUPFD, HIGH - 1), HIGH - 1);
    EXPECT_EQ(fcntl(kept_fd, F_DUPFD, HIGH - 1), HIGH + 1);
    EXPECT_EQ(close(closed_fd), 0);
    EXPECT_EQ(dup(kept_fd), closed_fd);  // the lowest that is free
}

static int folder_fd;
static int names_in(int fd, int size, char* seen) {
    union {
        struct dirent64 entry;
        char bytes[2000];
    } buffer;
    int count = 0;
    ssize_t got = getdents64(fd, buffer.bytes, (size_t)size);
    for (ssize_t at = 0; at < got; count++) {
        struct dirent64* entry = (struct dirent64*)(buffer.bytes + at);
        if (entry->d_name[0] >= 'a' && entry->d_name[0] <= 'f') seen[entry->d_name[0] - 'a']++;
        at += entry->d_reclen;
    }
    return count;
}
static char names_seen[6];
static void set_folder(void) {
    char name[] = "folder/a";
    EXPECT_EQ(mkdir("folder", 0700), 0);
    for (; name[7] <= 'f'; name[7]++) EXPECT_EQ(close(creat(name, 0600)), 0);
    EXPECT((folder_fd = open("folder", O_RDONLY | O_DIRECTORY)) >= 0);
    EXPECT(names_in(folder_fd, 80, names_seen) > 0);
}
static void reads_rest_of_folder(void) {
    char name[] = "folder/a";
    while (names_in(folder_fd, 80, names_seen) > 0) continue;
    EXPECT(memcmp(names_seen, "\1\1\1\1\1\1", 6) == 0);
    for (; name[7] <= 'f'; name[7]++) EXPECT_EQ(unlinkat(folder_fd, name + 7, 0), 0);
    EXPECT_EQ(rmdir("folder"), 0);
}

static int deleted_fd, unnamed_fd;
static void set_deleted(void) { EXPECT((deleted_fd = file_with("deleted")) >= 0); }
static void has_deleted(void) {
    struct stat status;
    EXPECT_EQ(fstat(deleted_fd, &status), 0);
    EXPECT_EQ(status.st_nlink, 0);
    holds(deleted_fd, 0, "deleted");
    EXPECT_EQ(ftruncate(deleted_fd, 3), 0);
    EXPECT_EQ(lseek(deleted_fd, 0, SEEK_END), 3);
}
static void set_unnamed(void) {
    POSSIBLE((unnamed_fd = open(".", O_TMPFILE | O_RDWR, 0640)) >= 0);
    EXPECT_EQ(write(unnamed_fd, "unnamed", 7), 7);
}
static void gets_name(void) {
    char path[40];
    struct stat status;
    snprintf(path, sizeof path, "/proc/self/fd/%d", unnamed_fd);
    EXPECT_EQ(linkat(AT_FDCWD, path, AT_FDCWD, "named", AT_SYMLINK_FOLLOW), 0);
    EXPECT_EQ(stat("named", &status), 0);
    EXPECT_EQ(status.st_size, 7);
    EXPECT_EQ(status.st_mode & 0777, 0640);
    EXPECT_EQ(unlink("named"), 0);
}

static int pipes[2], small_pipes[2], fifo_fd;
static void set_pipe(void) {
    EXPECT_EQ(pipe2(pipes, O_NONBLOCK | O_CLOEXEC), 0);
    EXPECT_EQ(fcntl(pipes[0], F_SETPIPE_SZ, PIPE_SIZE), PIPE_SIZE);
    EXPECT_EQ(write(pipes[1], "unread", 6), 6);
    EXPECT_EQ(pipe2(small_pipes, O_DIRECT), 0);
    EXPECT_EQ(write(small_pipes[1], "one", 3), 3);
    EXPECT_EQ(write(small_pipes[1], "two", 3), 3);
}
static void has_pipe(void) {
    EXPECT_EQ(fcntl(pipes[1], F_GETPIPE_SZ), PIPE_SIZE);
    EXPECT_EQ(fcntl(pipes[1], F_GETFL), O_WRONLY | O_NONBLOCK);
    gives(pipes[0], "unread");
    is_empty(pipes[0]);
}
static void has_packets(void) {
    gives(small_pipes[0], "one");
    gives(small_pipes[0], "two");
    is_empty(small_pipes[0]);
}
static void set_fifo(void) {
    EXPECT_EQ(mkfifo("fifo", 0600), 0);
    EXPECT((fifo_fd = open("fifo", O_RDWR)) >= 0);
    EXPECT_EQ(write(fifo_fd, "in fifo", 7), 7);
}
static void has_fifo(void) {
    int other = open("fifo", O_RDONLY);
    gives(other, "in fifo");
    EXPECT_EQ(unlink("fifo"), 0);
}

static int master_fd, slave_fd;
static void set_terminal(void) {
    struct termios state;
    struct winsize size = {33, 111, 5, 6};
    POSSIBLE((master_fd = posix_openpt(O_RDWR | O_NOCTTY)) >= 0);
    EXPECT(grantpt(master_fd) == 0 && unlockpt(master_fd) == 0);
    EXPECT((slave_fd = open(ptsname(master_fd), O_RDWR | O_NOCTTY)) >= 0);
    EXPECT_EQ(tcgetattr(slave_fd, &state), 0);
    state.c_lflag &= ~(tcflag_t)(ECHO | ICANON);
    state.c_cc[VMIN] = 3;
    state.c_cc[VINTR] = 5;
    EXPECT_EQ(tcsetattr(slave_fd, TCSANOW, &state), 0);
    EXPECT_EQ(ioctl(slave_fd, TIOCSWINSZ, &size), 0);
    EXPECT_EQ(write(master_fd, "typed", 5), 5);
    EXPECT_EQ(write(slave_fd, "shown", 5), 5);
}
static void has_terminal(void) {
    struct termios state;
    struct winsize size;
    EXPECT_EQ(tcgetattr(slave_fd, &state), 0);
    EXPECT_EQ(state.c_lflag & (ECHO | ICANON | ISIG), ISIG);
    EXPECT(state.c_cc[VMIN] == 3 && state.c_cc[VINTR] == 5);
    EXPECT_EQ(ioctl(master_fd, TIOCGWINSZ, &size), 0);
    EXPECT(size.ws_row == 33 && size.ws_col == 111 && size.ws_xpixel == 5 && size.ws_ypixel == 6);
    gives(slave_fd, "typed");
    gives(master_fd, "shown");
}

static int sealed_fd, memory_fd;
static void set_memfd(void) {
    sealed_fd = memfd_create("sealed", MFD_ALLOW_SEALING | MFD_CLOEXEC);
    memory_fd = memfd_create("memory", 0);
    EXPECT_EQ(write(sealed_fd, "content", 7), 7);
    EXPECT_EQ(fcntl(sealed_fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK), 0);
    EXPECT_EQ(write(memory_fd, "content", 7), 7);
}
static void has_seals(void) {
    EXPECT_EQ(fcntl(sealed_fd, F_GET_SEALS), F_SEAL_WRITE | F_SEAL_SHRINK);
    EXPECT_ERRNO(pwrite(sealed_fd, "x", 1, 0), EPERM);
    EXPECT_ERRNO(ftruncate(sealed_fd, 2), EPERM);
    EXPECT_EQ(ftruncate(sealed_fd, 20), 0);
    EXPECT_EQ(fcntl(sealed_fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SEAL), 0);
    EXPECT_ERRNO(fcntl(sealed_fd, F_ADD_SEALS, F_SEAL_GROW), EPERM);
    holds(sealed_fd, 0, "content");
}
static void has_memfd(void) {
    char path[40], link[40] = {0};
    EXPECT_EQ(lseek(memory_fd, 0, SEEK_CUR), 7);
    holds(memory_fd, 0, "content");
    snprintf(path, sizeof path, "/proc/self/fd/%d", memory_fd);
    EXPECT(readlink(path, link, sizeof link - 1) > 0);
    EXPECT(strcmp(link, "/memfd:memory (deleted)") == 0);
}

static int hinted_fd, sparse_fd;
static void set_hint(void) {
    uint64_t hint = 4;  // RWH_WRITE_LIFE_LONG
    EXPECT((hinted_fd = file_with("hinted")) >= 0);
    POSSIBLE(fcntl(hinted_fd, F_SET_RW_HINT, &hint) == 0);
}
static void has_hint(void) {
    uint64_t hint = 0;
    EXPECT_EQ(fcntl(hinted_fd, F_GET_RW_HINT, &hint), 0);
    EXPECT_EQ(hint, 4);
}
static void set_sparse(void) {
    EXPECT((sparse_fd = file_with("start")) >= 0);
    EXPECT_EQ(pwrite(sparse_fd, "end", 3, 1 << 20), 3);
}
static void is_sparse(void) {
    EXPECT_EQ(lseek(sparse_fd, 100000, SEEK_DATA), 1 << 20);
    EXPECT_EQ(lseek(sparse_fd, 0, SEEK_HOLE), 4096);
}

static int null_fd, zero_fd, full_fd, space_fd;
static ino_t space_inode;
static void set_devices(void) {
    struct stat status;
    null_fd = open("/dev/null", O_RDWR);
    zero_fd = open("/dev/zero", O_RDWR);
    full_fd = open("/dev/full", O_RDWR);
    EXPECT((space_fd = open("/proc/self/ns/uts", O_RDONLY)) >= 0);
    EXPECT_EQ(fstat(space_fd, &status), 0);
    space_inode = status.st_ino;
}
static void has_devices(void) {
    char byte = 1;
    EXPECT_EQ(read(null_fd, &byte, 1), 0);
    EXPECT_EQ(read(zero_fd, &byte, 1), 1);
    EXPECT_EQ(byte, 0);
    EXPECT_ERRNO(write(full_fd, &byte, 1), ENOSPC);
}
static void has_namespace(void) {
    struct stat status;
    EXPECT_EQ(fstat(space_fd, &status), 0);
    EXPECT_EQ(status.st_ino, space_inode);
}

static const struct kind kinds[] = {
    {"numbers", set_numbers, has_numbers},
    {"close on exec", NULL, has_close_on_exec},
    {"offset", set_offset, has_offset},
    {"offset of two descriptors", set_shared_offset, shares_offset},
    {"O_APPEND", set_append, appends},
    {"flags of open", set_open_flags, has_open_flags},
    {"O_PATH", NULL, has_path_only},
    {"folder, read in part", set_folder, reads_rest_of_folder},
    {"deleted file", set_deleted, has_deleted},
    {"file without a name", set_unnamed, gets_name},
    {"sparse file", set_sparse, is_sparse},
    {"hint of a file", set_hint, has_hint},
    {"pipe with data and a size", set_pipe, has_pipe},
    {"pipe with packets", NULL, has_packets},
    {"FIFO with data", set_fifo, has_fifo},
    {"terminal", set_terminal, has_terminal},
    {"memfd with seals", set_memfd, has_seals},
    {"memfd", NULL, has_memfd},
    {"devices", set_devices, has_devices},
    {"namespace", NULL, has_namespace},
};

int main(void) { return state_run(kinds, sizeof kinds / sizeof *kinds); }
