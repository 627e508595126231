// sendfile, splice, tee and copy_file_range move bytes without the program's memory.
#include <fcntl.h>
#include <sys/sendfile.h>

#include "guest.h"

enum { SIZE = 30000 };

int main(void) {
    static char data[SIZE], back[SIZE];
    guest_fill(data, SIZE, 4);
    int in = open("in", O_RDWR | O_CREAT, 0600), out = open("out", O_RDWR | O_CREAT, 0600);
    CHECK_EQ(write(in, data, SIZE), SIZE);
    off_t offset = 1000;
    CHECK_EQ(sendfile(out, in, &offset, SIZE), SIZE - 1000);
    CHECK_EQ(offset, SIZE);
    CHECK_EQ(pread(out, back, SIZE, 0), SIZE - 1000);
    CHECK(memcmp(back, data + 1000, SIZE - 1000) == 0);
    int pipe_a[2], pipe_b[2];
    CHECK_EQ(pipe(pipe_a), 0);
    CHECK_EQ(pipe(pipe_b), 0);
    off64_t from = 0;
    CHECK_EQ(splice(in, &from, pipe_a[1], NULL, 8000, 0), 8000);
    CHECK_EQ(tee(pipe_a[0], pipe_b[1], 8000, 0), 8000);
    CHECK_EQ(read(pipe_a[0], back, SIZE), 8000);
    CHECK(memcmp(back, data, 8000) == 0);
    memset(back, 0, SIZE);
    CHECK_EQ(read(pipe_b[0], back, SIZE), 8000);
    CHECK(memcmp(back, data, 8000) == 0);
    off64_t to = 0;
    from = 500;
    CHECK_EQ(copy_file_range(in, &from, out, &to, 2000, 0), 2000);
    CHECK_EQ(pread(out, back, 2000, 0), 2000);
    CHECK(memcmp(back, data + 500, 2000) == 0);
    return guest_passed();
}
