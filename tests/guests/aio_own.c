// Linux AIO (io_submit) and POSIX aio on a file.
#include <aio.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sys/syscall.h>

#include "guest.h"

int main(void) {
    static char data[8192], back[8192];
    guest_fill(data, sizeof data, 1);
    int fd = open("data", O_RDWR | O_CREAT, 0600);
    aio_context_t context = 0;
    if (syscall(SYS_io_setup, 8, &context) != 0 && errno == ENOSYS) SKIP("the kernel has no AIO");
    struct iocb write_block = {.aio_lio_opcode = IOCB_CMD_PWRITE,
                               .aio_fildes = (uint32_t)fd,
                               .aio_buf = (uintptr_t)data,
                               .aio_nbytes = sizeof data,
                               .aio_data = 77};
    struct iocb* list[] = {&write_block};
    struct io_event event;
    CHECK_EQ(syscall(SYS_io_submit, context, 1, list), 1);
    CHECK_EQ(syscall(SYS_io_getevents, context, 1, 1, &event, NULL), 1);
    CHECK(event.data == 77 && event.res == sizeof data);
    CHECK_EQ(syscall(SYS_io_destroy, context), 0);
    struct aiocb request = {.aio_fildes = fd, .aio_buf = back, .aio_nbytes = sizeof back};
    CHECK_EQ(aio_read(&request), 0);
    const struct aiocb* requests[] = {&request};
    while (aio_error(&request) == EINPROGRESS) aio_suspend(requests, 1, NULL);
    CHECK_EQ(aio_return(&request), sizeof back);
    CHECK(memcmp(data, back, sizeof data) == 0);
    return guest_passed();
}
