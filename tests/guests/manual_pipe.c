// pipe(2) and pipe(7): flags, capacity, packets, atomic writes, what the ends see.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

#include "manual.h"

static void flags(void) {
    int fds[2] = {-1, -1};
    TRY(pipe(NULL));
    TRY(pipe((int*)manual_bad_pointer()));
    TRY(pipe2(fds, 0x1));
    TRY(pipe2(fds, O_APPEND));
    SAY("untouched %d %d", fds[0], fds[1]);
    TRY(pipe2(fds, O_CLOEXEC | O_NONBLOCK | O_DIRECT));
    TRY(fcntl(fds[0], F_GETFD));
    TRY(fcntl(fds[0], F_GETFL) & (O_ACCMODE | O_NONBLOCK | O_DIRECT));
    TRY(fcntl(fds[1], F_GETFL) & (O_ACCMODE | O_NONBLOCK | O_DIRECT));
    char bytes[8192];
    TRY(read(fds[0], bytes, 1));
    TRY(read(fds[1], bytes, 1));
    TRY(write(fds[0], bytes, 1));
    TRY(write(fds[1], "first", 5));
    TRY(write(fds[1], "second", 6));
    TRY(write(fds[1], bytes, 5000));
    TRY(read(fds[0], bytes, 3));  // the packet's rest is gone
    TRY(read(fds[0], bytes, 100));
    TRY(read(fds[0], bytes, 8192));
    TRY(read(fds[0], bytes, 8192));
    TRY(read(fds[0], bytes, 8192));
    TRY(read(fds[0], bytes, 0));
    int* across = (int*)((char*)manual_page_end(4) + 0);
    TRY(pipe(across));
    TRY(lseek(fds[0], 0, SEEK_SET));
    TRY(pread(fds[0], bytes, 1, 0));
}

static void capacity(void) {
    int fds[2];
    CHECK_EQ(pipe2(fds, O_NONBLOCK), 0);
    TRY(fcntl(fds[0], F_GETPIPE_SZ));
    TRY(fcntl(fds[0], F_SETPIPE_SZ, 1));
    TRY(fcntl(fds[0], F_SETPIPE_SZ, 5000));
    TRY(fcntl(fds[0], F_SETPIPE_SZ, 0));
    TRY(fcntl(fds[0], F_SETPIPE_SZ, 1 << 20));
    static char bytes[1 << 21];
    TRY(write(fds[1], bytes, sizeof bytes));
    TRY(fcntl(fds[0], F_SETPIPE_SZ, 65536));
    int waiting;
    TRY(ioctl(fds[0], FIONREAD, &waiting));
    SAY("%d", waiting);
    TRY(write(fds[1], bytes, 1));
    struct pollfd ends[2] = {{fds[0], POLLIN | POLLOUT, 0}, {fds[1], POLLIN | POLLOUT, 0}};
    TRY(poll(ends, 2, 0));
    SAY("%#x %#x", ends[0].revents, ends[1].revents);
    TRY(read(fds[0], bytes, sizeof bytes));
    TRY(poll(ends, 2, 0));
    SAY("%#x %#x", ends[0].revents, ends[1].revents);
    manual_become_nobody();
    TRY(fcntl(fds[0], F_SETPIPE_SZ, 1 << 22));
    struct rlimit few = {4, 4};
    setrlimit(RLIMIT_NOFILE, &few);
    int more[2] = {7, 7};
    TRY(pipe(more));
    SAY("%d %d", more[0], more[1]);
}

static void closed_ends(void) {
    int fds[2];
    char byte;
    CHECK_EQ(pipe(fds), 0);
    close(fds[1]);
    TRY(read(fds[0], &byte, 1));
    struct pollfd end = {fds[0], POLLIN, 0};
    TRY(poll(&end, 1, 0));
    SAY("%#x", end.revents);
    CHECK_EQ(pipe(fds), 0);
    close(fds[0]);
    end = (struct pollfd){fds[1], POLLOUT, 0};
    TRY(poll(&end, 1, 0));
    SAY("%#x", end.revents);
    signal(SIGPIPE, SIG_IGN);
    TRY(write(fds[1], "x", 1));
    TRY(write(fds[1], "x", 0));
    signal(SIGPIPE, SIG_DFL);
    TRY(write(fds[1], "x", 1));
}

// Writes of up to PIPE_BUF bytes never mix.
static int shared_pipe[2];
static void* writer(void* letter) {
    char record[4096];
    memset(record, (int)(long)letter, sizeof record);
    for (int i = 0; i < 50; i++) CHECK_EQ(write(shared_pipe[1], record, sizeof record), 4096);
    return NULL;
}
static void atomic(void) {
    CHECK_EQ(pipe(shared_pipe), 0);
    pthread_t threads[3];
    for (long i = 0; i < 3; i++) pthread_create(&threads[i], NULL, writer, (void*)('a' + i));
    int counts[3] = {0}, mixed = 0;
    for (int i = 0; i < 150; i++) {
        char record[4096];
        for (size_t got = 0; got < sizeof record;)
            got += read(shared_pipe[0], record + got, sizeof record - got);
        for (size_t j = 1; j < sizeof record; j++) mixed += record[j] != record[0];
        counts[record[0] - 'a']++;
    }
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    SAY("%d %d %d, mixed %d", counts[0], counts[1], counts[2], mixed);
}

static void partly_bad(void) {
    int fds[2];
    CHECK_EQ(pipe(fds), 0);
    char* end = (char*)manual_page_end(10);
    memset(end, 'e', 10);
    TRY(write(fds[1], end, 20));
    TRY(write(fds[1], end, 10));
    TRY(write(fds[1], "0123456789abcdefghij", 20));
    TRY(read(fds[0], end, 5));
    TRY(read(fds[0], end, 5));
    TRY(read(fds[0], end, 20));
    int waiting;
    TRY(ioctl(fds[0], FIONREAD, &waiting));
    SAY("%d left", waiting);
    TRY(write(fds[1], manual_bad_pointer(), 1));
    TRY(read(fds[0], manual_bad_pointer(), 1));
}

int main(void) {
    manual_begin();
    manual_in_child("flags", flags);
    manual_in_child("capacity", capacity);
    manual_in_child("closed ends", closed_ends);
    manual_in_child("atomic", atomic);
    manual_in_child("partly bad", partly_bad);
    return guest_passed();
}
