// The program uses userfaultfd itself: a handler thread fills pages on demand.
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "guest.h"

enum { PAGES = 50, PAGE = 4096 };
static int uffd, served;

static void* handler(void* area) {
    char* content = aligned_alloc(PAGE, PAGE);
    while (served < PAGES) {
        struct uffd_msg message;
        struct pollfd polled = {uffd, POLLIN, 0};
        CHECK_EQ(poll(&polled, 1, 10000), 1);
        if (read(uffd, &message, sizeof message) != sizeof message) continue;
        CHECK_EQ(message.event, UFFD_EVENT_PAGEFAULT);
        uint64_t page = message.arg.pagefault.address & ~(uint64_t)(PAGE - 1);
        memset(content, (int)((page - (uintptr_t)area) / PAGE) + 1, PAGE);
        struct uffdio_copy copy = {.dst = page, .src = (uintptr_t)content, .len = PAGE};
        CHECK_EQ(ioctl(uffd, UFFDIO_COPY, &copy), 0);
        served++;
    }
    return NULL;
}

int main(void) {
    uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    if (uffd < 0) SKIP("userfaultfd is not allowed here");
    struct uffdio_api api = {.api = UFFD_API};
    CHECK_EQ(ioctl(uffd, UFFDIO_API, &api), 0);
    char* area =
        mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register range = {.range = {(uintptr_t)area, PAGES * PAGE},
                                    .mode = UFFDIO_REGISTER_MODE_MISSING};
    CHECK_EQ(ioctl(uffd, UFFDIO_REGISTER, &range), 0);
    CHECK_EQ(ioctl(uffd, UFFDIO_REGISTER, &range), 0);  // once more; another one may not
    int other = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
    struct uffdio_api again = {.api = UFFD_API};
    CHECK_EQ(ioctl(other, UFFDIO_API, &again), 0);
    CHECK_ERRNO(ioctl(other, UFFDIO_REGISTER, &range), EBUSY);
    close(other);
    pthread_t thread;
    pthread_create(&thread, NULL, handler, area);
    for (int i = 0; i < PAGES; i++) {
        int page = i * 7 % PAGES;
        CHECK_EQ(area[page * PAGE + 100], page + 1);
    }
    pthread_join(thread, NULL);
    CHECK_EQ(served, PAGES);
    return guest_passed();
}
