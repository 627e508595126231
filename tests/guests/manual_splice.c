// splice(2), tee(2), vmsplice(2): pipes, files, sockets, offsets, flags, errors.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "manual.h"

static int a[2], b[2], file;

static void fresh(void) {
    CHECK_EQ(pipe2(a, O_NONBLOCK), 0);
    CHECK_EQ(pipe2(b, O_NONBLOCK), 0);
    file = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK_EQ(write(file, "0123456789", 10), 10);
}
static void show(const char* what, int fd) {
    char text[64] = "";
    errno = 0;
    long got = read(fd, text, sizeof text - 1);
    SAY("%s: %ld '%s' %s", what, got, text, got < 0 ? strerrorname_np(errno) : "");
}

static void errors(void) {
    fresh();
    loff_t at = 0, negative = -1;
    TRY(splice(-1, NULL, a[1], NULL, 1, 0));
    TRY(splice(a[0], NULL, -1, NULL, 1, 0));
    TRY(splice(file, NULL, file, NULL, 1, 0));
    TRY(splice(a[0], NULL, a[1], NULL, 1, 0));
    TRY(splice(file, &at, a[1], &at, 1, 0));
    TRY(splice(a[0], &at, file, NULL, 1, 0));
    TRY(splice(file, &negative, a[1], NULL, 1, 0));
    TRY(splice(file, manual_bad_pointer(), a[1], NULL, 1, 0));
    TRY(splice(file, &at, a[1], NULL, 1, 0x100));
    TRY(splice(a[1], NULL, file, NULL, 1, 0));
    TRY(splice(file, &at, a[0], NULL, 1, 0));
    TRY(splice(a[0], NULL, file, NULL, 1, SPLICE_F_NONBLOCK));
    TRY(splice(file, &at, a[1], NULL, 0, 0));
    int append = open("file", O_WRONLY | O_APPEND), dir = open(".", O_RDONLY);
    CHECK_EQ(write(a[1], "xyz", 3), 3);
    TRY(splice(a[0], NULL, append, NULL, 3, 0));
    TRY(splice(dir, NULL, a[1], NULL, 1, 0));
    int read_only = open("file", O_RDONLY);
    TRY(splice(a[0], NULL, read_only, NULL, 3, 0));
    TRY(tee(a[0], file, 1, 0));
    TRY(tee(file, a[1], 1, 0));
    TRY(tee(a[0], a[1], 1, 0));
    TRY(tee(b[0], a[1], 1, 0));
    TRY(tee(a[0], b[1], 1, 0x100));
    struct iovec part = {"abc", 3}, bad = {manual_bad_pointer(), 3};
    TRY(vmsplice(file, &part, 1, 0));
    TRY(vmsplice(-1, &part, 1, 0));
    TRY(vmsplice(b[1], manual_bad_pointer(), 1, 0));
    TRY(vmsplice(b[1], &bad, 1, 0));
    TRY(vmsplice(b[1], &part, 1025, 0));
    TRY(vmsplice(b[1], &part, 0, 0));
}

static void moves(void) {
    fresh();
    loff_t at = 3;
    TRY(splice(file, &at, a[1], NULL, 4, 0));
    SAY("at %ld, file at %ld", (long)at, (long)lseek(file, 0, SEEK_CUR));
    TRY(tee(a[0], b[1], 2, 0));
    show("copied", b[0]);
    show("kept", a[0]);
    lseek(file, 8, SEEK_SET);
    TRY(splice(file, NULL, a[1], NULL, 100, SPLICE_F_MOVE | SPLICE_F_MORE));
    SAY("file at %ld", (long)lseek(file, 0, SEEK_CUR));
    TRY(splice(file, NULL, a[1], NULL, 100, 0));  // its end
    TRY(splice(a[0], NULL, b[1], NULL, 1, 0));
    show("moved on", b[0]);
    at = 20;
    TRY(splice(a[0], NULL, file, &at, 10, 0));
    SAY("at %ld, size %ld", (long)at, (long)lseek(file, 0, SEEK_END));
    char part[32] = "";
    TRY(pread(file, part, 21, 0));
    SAY("%.10s %d %c", part, part[15], part[20]);
    int ends[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    CHECK_EQ(write(a[1], "through", 7), 7);
    TRY(splice(a[0], NULL, ends[0], NULL, 7, 0));
    TRY(splice(ends[1], NULL, b[1], NULL, 100, 0));
    show("through a socket", b[0]);
    close(a[1]);
    TRY(splice(a[0], NULL, file, NULL, 1, 0));
}

static void memory(void) {
    fresh();
    char first[] = "first ", second[] = "second";
    struct iovec parts[2] = {{first, 6}, {second, 6}};
    TRY(vmsplice(a[1], parts, 2, 0));
    show("given", a[0]);
    CHECK_EQ(write(a[1], "for memory", 10), 10);
    char one[4] = "", two[16] = "";
    struct iovec into[2] = {{one, 3}, {two, 15}};
    TRY(vmsplice(a[0], into, 2, 0));
    SAY("'%s' '%s'", one, two);
    static char large[1 << 20];
    struct iovec whole = {large, sizeof large};
    TRY(vmsplice(a[1], &whole, 1, SPLICE_F_NONBLOCK));
    TRY(vmsplice(a[1], &whole, 1, SPLICE_F_NONBLOCK));
    int waiting;
    TRY(ioctl(a[0], FIONREAD, &waiting));
    SAY("%d", waiting);
}

static void much(void) {
    fresh();
    static char block[100000];
    for (size_t i = 0; i < sizeof block; i++) block[i] = (char)(i * 7);
    CHECK_EQ(pwrite(file, block, sizeof block, 0), (long)sizeof block);
    int out = open("copy", O_RDWR | O_CREAT | O_TRUNC, 0600);
    loff_t from = 0, to = 0;
    long sum = 0;
    while (sum < (long)sizeof block) {
        long got = splice(file, &from, a[1], NULL, 60000, 0);
        CHECK(got > 0);
        while (got > 0) {
            long put = splice(a[0], NULL, out, &to, (size_t)got, 0);
            CHECK(put > 0);
            got -= put, sum += put;
        }
    }
    static char back[sizeof block];
    CHECK_EQ(pread(out, back, sizeof back, 0), (long)sizeof back);
    SAY("%ld equal %d", sum, memcmp(block, back, sizeof block) == 0);
    unlink("copy");
}

int main(void) {
    manual_begin();
    manual_in_child("errors", errors);
    manual_in_child("moves", moves);
    manual_in_child("memory", memory);
    manual_in_child("much", much);
    unlink("file");
    return guest_passed();
}
