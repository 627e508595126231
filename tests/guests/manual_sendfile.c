// sendfile(2), copy_file_range(2) and FIDEDUPERANGE, ioctl_fideduperange(2).
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "manual.h"

static int source, target;
static void begin(void) {
    source = open("source", O_RDWR | O_CREAT | O_TRUNC, 0600);
    target = open("target", O_RDWR | O_CREAT | O_TRUNC, 0600);
    static char bytes[20000];
    guest_fill(bytes, sizeof bytes, 5);
    CHECK_EQ(write(source, bytes, sizeof bytes), 20000);
    lseek(source, 0, SEEK_SET);
}
static void positions(const char* when) {
    SAY("%s: at %ld and %ld", when, (long)lseek(source, 0, SEEK_CUR),
        (long)lseek(target, 0, SEEK_CUR));
}

static void send_file(void) {
    begin();
    off_t offset = 100;
    TRY(sendfile(target, source, NULL, 1000));
    positions("moved");
    TRY(sendfile(target, source, &offset, 500));
    SAY("%ld", (long)offset);
    positions("offset");
    offset = 19990;
    TRY(sendfile(target, source, &offset, 500));
    TRY(sendfile(target, source, &offset, 500));
    TRY(sendfile(target, source, NULL, 0));
    offset = -1;
    TRY(sendfile(target, source, &offset, 1));
    TRY(sendfile(target, source, (off_t*)manual_bad_pointer(), 1));
    TRY(sendfile(-1, source, NULL, 1));
    TRY(sendfile(target, -1, NULL, 1));
    TRY(sendfile(open("source", O_RDONLY), source, NULL, 1));
    TRY(sendfile(target, open("target", O_WRONLY), NULL, 1));
    TRY(sendfile(open("target", O_WRONLY | O_APPEND), source, NULL, 1));
    TRY(sendfile(target, open(".", O_RDONLY), NULL, 1));
    int fds[2], pair[2];
    CHECK_EQ(pipe2(fds, O_NONBLOCK), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    TRY(sendfile(target, fds[0], NULL, 1));
    offset = 0;
    TRY(sendfile(fds[1], source, &offset, 3000));
    TRY(sendfile(pair[0], source, &offset, 3000));
    TRY(sendfile(target, pair[1], NULL, 100));
    static char got[8000], expected[8000];
    TRY(read(fds[0], got, sizeof got));
    TRY(read(pair[1], got + 3000, sizeof got - 3000));
    CHECK_EQ(pread(source, expected, 6000, 0), 6000);
    SAY("the same: %d", !memcmp(got, expected, 6000));
    while (sendfile(fds[1], source, &(off_t){0}, 20000) > 0) continue;
    SAY("full: %s", strerrorname_np(errno));
    struct stat status;
    fstat(target, &status);
    SAY("%ld", (long)status.st_size);
}

static void copy(void) {
    begin();
    off_t in = 10, out = 100;
    TRY(copy_file_range(source, &in, target, &out, 1000, 0));
    SAY("%ld %ld", (long)in, (long)out);
    positions("kept");
    TRY(copy_file_range(source, NULL, target, NULL, 100000, 0));
    positions("moved");
    TRY(copy_file_range(source, NULL, target, NULL, 1, 0));
    TRY(copy_file_range(source, NULL, target, NULL, 1, 1));
    in = 0, out = 500;
    TRY(copy_file_range(source, &in, source, &out, 1000, 0));  // onto itself
    in = 0, out = 1000;
    TRY(copy_file_range(source, &in, source, &out, 1000, 0));
    in = -1;
    TRY(copy_file_range(source, &in, target, &out, 1, 0));
    TRY(copy_file_range(source, (off_t*)manual_bad_pointer(), target, &out, 1, 0));
    TRY(copy_file_range(open(".", O_RDONLY), NULL, target, NULL, 1, 0));
    TRY(copy_file_range(open("target", O_WRONLY), NULL, target, NULL, 1, 0));
    TRY(copy_file_range(source, NULL, open("target", O_RDONLY), NULL, 1, 0));
    TRY(copy_file_range(source, NULL, open("target", O_WRONLY | O_APPEND), NULL, 1, 0));
    TRY(copy_file_range(open("/dev/zero", O_RDONLY), NULL, target, NULL, 1, 0));
    TRY(copy_file_range(99, NULL, target, NULL, 1, 0));
}

static void dedupe(void) {
    begin();
    char room[sizeof(struct file_dedupe_range) + 2 * sizeof(struct file_dedupe_range_info)];
    struct file_dedupe_range* range = (struct file_dedupe_range*)room;
    memset(room, 0, sizeof room);
    range->src_length = 4096;
    range->dest_count = 2;
    range->info[0].dest_fd = target;
    range->info[1].dest_fd = -1;
    TRY(ioctl(source, FIDEDUPERANGE, range));
    SAY("%d %d", range->info[0].status, range->info[1].status);
    TRY(ioctl(source, FIDEDUPERANGE, manual_bad_pointer()));
    range->dest_count = 0;
    TRY(ioctl(source, FIDEDUPERANGE, range));
    range->dest_count = 1;
    range->src_offset = 1ULL << 63;
    TRY(ioctl(source, FIDEDUPERANGE, range));
    TRY(ioctl(open(".", O_RDONLY), FIDEDUPERANGE, range));
    TRY(ioctl(source, FICLONE, -1));
    TRY(ioctl(source, FICLONE, target));
    TRY(ioctl(source, FICLONERANGE, manual_bad_pointer()));
}

int main(void) {
    manual_begin();
    manual_in_child("sendfile", send_file);
    manual_in_child("copy_file_range", copy);
    manual_in_child("deduplication", dedupe);
    return guest_passed();
}
