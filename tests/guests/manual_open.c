// open(2), openat and creat: flags, modes, every error that can be made here.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "manual.h"

static void made(const char* name) {
    struct stat status;
    if (stat(name, &status) == 0)
        SAY("%s: %o, %ld bytes", name, status.st_mode, (long)status.st_size);
}

static void creation(void) {
    umask(027);
    TRY(open("new", O_CREAT | O_EXCL | O_WRONLY, 0777) >= 0);
    made("new");
    TRY(open("new", O_CREAT | O_EXCL | O_WRONLY, 0777));
    TRY(write(open("new", O_WRONLY), "content", 7));
    TRY(open("new", O_RDONLY | O_TRUNC) >= 0);
    made("new");
    umask(0);
    TRY(open("odd", O_CREAT | O_RDONLY, 07777) >= 0);
    made("odd");
    int fd = creat("none", 0);
    TRY(write(fd, "x", 1));
    TRY(read(fd, &fd, 1));
    made("none");
    TRY(open("link", O_CREAT | O_EXCL | O_WRONLY, 0600));
    TRY(open("dangling", O_CREAT | O_WRONLY, 0600) >= 0);
    made("target");
    fd = open("new", O_WRONLY | O_APPEND);
    TRY(write(fd, "abc", 3));
    TRY(lseek(fd, 0, SEEK_SET));
    TRY(write(fd, "def", 3));
    made("new");
    TRY(pwrite(fd, "g", 1, 0));
    made("new");
    TRY(fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND | O_NONBLOCK));
}

static void errors(void) {
    static char name[300], path[5000];
    memset(name, 'n', 299);
    for (int i = 0; i < 4998; i += 2) memcpy(path + i, "./", 2);
    TRY(open("", O_RDONLY));
    TRY(open("absent", O_RDONLY));
    TRY(open("absent/below", O_CREAT | O_RDWR, 0600));
    TRY(open("file/below", O_RDONLY));
    TRY(open("file", O_RDONLY | O_DIRECTORY));
    TRY(open(".", O_WRONLY));
    TRY(open(".", O_RDWR | O_CREAT, 0600));
    TRY(open("directory/", O_CREAT | O_RDONLY, 0600));
    TRY(open("directory", O_CREAT | O_DIRECTORY | O_RDONLY, 0600));
    TRY(open("loop", O_RDONLY));
    TRY(open("link", O_RDONLY | O_NOFOLLOW));
    TRY(open("link", O_RDONLY | O_NOFOLLOW | O_PATH) >= 0);
    TRY(open(name, O_RDONLY));
    TRY(open(path, O_RDONLY));
    TRY(open((char*)manual_bad_pointer(), O_RDONLY));
    TRY(open("fifo", O_WRONLY | O_NONBLOCK));
    TRY(open("fifo", O_RDONLY | O_NONBLOCK) >= 0);
    TRY(open("socket", O_RDONLY));
    TRY(open("file", O_RDONLY | O_TMPFILE));
    TRY(open(".", O_RDONLY | O_TMPFILE, 0600));
    TRY(open(".", O_RDWR | O_TMPFILE, 0600) >= 0);
    TRY(openat(99, "file", O_RDONLY));
    TRY(openat(99, "/dev/null", O_RDONLY) >= 0);
    TRY(openat(open("file", O_RDONLY), "below", O_RDONLY));
    TRY(openat(open(".", O_PATH), "file", O_RDONLY) >= 0);
    TRY(open("/dev/full", O_RDWR) >= 0);
    TRY(open("/proc/self/fd/999", O_RDONLY));
    TRY(open("running", O_RDONLY) >= 0);
    TRY(open("/proc/self/exe", O_WRONLY));
    TRY(open("/proc/self/exe", O_RDONLY) >= 0);
    TRY(open("file", O_ACCMODE) >= 0);
    TRY(read(open("file", O_ACCMODE), path, 1));
    TRY(open("/dev/tty", O_RDONLY) >= 0 || errno == ENXIO);
    int fd = open("file", O_PATH);
    TRY(read(fd, path, 1));
    TRY(fchmod(fd, 0600));
    TRY(fcntl(fd, F_GETFL) & O_PATH);
    TRY(fcntl(fd, F_SETFL, O_NONBLOCK));
    TRY(ftruncate(fd, 0));
    struct stat status;
    TRY(fstat(fd, &status));
    struct rlimit limit = {fd + 1, 4096};
    setrlimit(RLIMIT_NOFILE, &limit);
    for (int i = 3; i < fd; i++) fcntl(fd, F_DUPFD, 3);
    TRY(open("file", O_RDONLY));
    TRY(open("wont_be", O_CREAT | O_RDWR, 0600));
    made("wont_be");
}

static void as_nobody(void) {
    chmod(".", 0755);
    manual_become_nobody();
    TRY(open("closed", O_RDONLY));
    TRY(open("directory/absent", O_RDONLY));
    TRY(open("new_one", O_CREAT | O_RDWR, 0600));
    TRY(open("file", O_WRONLY));
    TRY(open("file", O_RDONLY | O_NOATIME));
    TRY(open("file", O_RDONLY) >= 0);
    TRY(open("closed", O_PATH) >= 0);
    TRY(open(".", O_RDWR | O_TMPFILE, 0600));
}

static void of_pipes(void) {
    pid_t reader = fork();
    if (reader == 0) {
        int fd = open("fifo", O_RDONLY);  // waits for a writer
        char byte = 0;
        _exit(read(fd, &byte, 1) == 1 ? byte : 1);
    }
    int fd = open("fifo", O_WRONLY);
    TRY(write(fd, "\7", 1));
    int status;
    waitpid(reader, &status, 0);
    SAY("%#x", status);
    fd = open("fifo", O_RDWR);
    TRY(write(fd, "x", 1));
    TRY(fd >= 0);
}

static volatile int handled;
static void on_alarm(int number) { handled++; }
static void interrupted(void) {
    struct sigaction action = {.sa_handler = on_alarm};
    sigaction(SIGALRM, &action, NULL);
    ualarm(20000, 20000);  // again: the first may come before the call
    TRY(open("fifo", O_RDONLY));
    SAY("handled %d", handled > 0);
}

int main(void) {
    manual_begin();
    symlink("file", "link");
    symlink("target", "dangling");
    symlink("loop", "loop");
    mkdir("directory", 0700);
    close(creat("file", 0644));
    close(creat("closed", 0600));
    mkfifo("fifo", 0600);
    close(creat("running", 0755));
    struct sockaddr_un address = {AF_UNIX, "socket"};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK_EQ(bind(fd, (struct sockaddr*)&address, sizeof address), 0);
    close(fd);
    manual_in_child("creation", creation);
    manual_in_child("errors", errors);
    manual_in_child("as nobody", as_nobody);
    manual_in_child("of pipes", of_pipes);
    manual_in_child("interrupted", interrupted);
    unlink("fifo");
    unlink("socket");
    return guest_passed();
}
