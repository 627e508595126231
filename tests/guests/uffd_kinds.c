// What else a userfaultfd does: zero pages, pages that are there already, waking late, the kernel's
// own accesses, memory that is emptied again, ranges and descriptors that are given back.
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "guest.h"

enum { PAGE = 4096, PAGES = 64, THREADS = 3 };
static int uffd, served;
static char* area;

static char* page(int number) { return area + number * PAGE; }

// What the page's number says: zeros for every fifth.
static int value_of(int number) { return number % 5 == 0 ? 0 : number + 1; }

static void serve(char* content, uint64_t address) {
    int number = (int)((address - (uintptr_t)area) / PAGE);
    struct uffdio_range range = {address & ~(uint64_t)(PAGE - 1), PAGE};
    if (value_of(number) == 0) {
        struct uffdio_zeropage zero = {.range = range};
        int done = ioctl(uffd, UFFDIO_ZEROPAGE, &zero);
        CHECK(done == 0 ? zero.zeropage == PAGE : errno == EEXIST);
        return;
    }
    memset(content, value_of(number), PAGE);
    struct uffdio_copy copy = {range.start, (uintptr_t)content, PAGE, UFFDIO_COPY_MODE_DONTWAKE, 0};
    int done = ioctl(uffd, UFFDIO_COPY, &copy);
    CHECK(done == 0 ? copy.copy == PAGE : errno == EEXIST);
    CHECK_EQ(ioctl(uffd, UFFDIO_WAKE, &range), 0);
}

static void* handler(void* unused) {
    char* content = aligned_alloc(PAGE, PAGE);
    for (;;) {
        struct uffd_msg messages[4];
        struct pollfd polled = {uffd, POLLIN, 0};
        CHECK_EQ(poll(&polled, 1, 10000), 1);
        ssize_t got = read(uffd, messages, sizeof messages);
        if (got < 0) continue;
        for (size_t i = 0; i < (size_t)got / sizeof messages[0]; i++) {
            CHECK_EQ(messages[i].event, UFFD_EVENT_PAGEFAULT);
            uint64_t address = messages[i].arg.pagefault.address;
            if (address >= (uintptr_t)page(PAGES - 1)) return NULL;
            served++;
            serve(content, address);
        }
    }
}

static void* toucher(void* seed) {
    for (int i = 0; i < 40; i++) {
        int number = (i * 7 + (int)(intptr_t)seed * 11) % 40;
        CHECK_EQ(*(volatile unsigned char*)(page(number) + 100), value_of(number));
    }
    return NULL;
}

static void* last_one(void* unused) {
    *page(PAGES - 1) = 1;
    return NULL;
}

static void refusals(void) {
    struct uffdio_api api = {.api = 1};
    CHECK_ERRNO(ioctl(uffd, UFFDIO_API, &api), EINVAL);
    api = (struct uffdio_api){.api = UFFD_API};
    CHECK_EQ(ioctl(uffd, UFFDIO_API, &api), 0);
    CHECK(api.ioctls & 1ULL << _UFFDIO_REGISTER);
    struct uffdio_register odd = {{(uintptr_t)area + 1, PAGE}, UFFDIO_REGISTER_MODE_MISSING, 0};
    CHECK_ERRNO(ioctl(uffd, UFFDIO_REGISTER, &odd), EINVAL);
    struct uffdio_register none = {{(uintptr_t)area, PAGE}, 0, 0};
    CHECK_ERRNO(ioctl(uffd, UFFDIO_REGISTER, &none), EINVAL);
    struct uffdio_copy copy = {(uintptr_t)area, (uintptr_t)area, PAGE, 0, 0};
    CHECK_ERRNO(ioctl(uffd, UFFDIO_COPY, &copy), ENOENT);
}

int main(void) {
    uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    if (uffd < 0) SKIP("userfaultfd is not allowed here");
    area = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    strcpy(page(50), "was there");
    refusals();
    struct uffdio_register range = {
        {(uintptr_t)area, PAGES * PAGE}, UFFDIO_REGISTER_MODE_MISSING, 0};
    CHECK_EQ(ioctl(uffd, UFFDIO_REGISTER, &range), 0);
    pthread_t thread, touchers[THREADS], last;
    CHECK_EQ(pthread_create(&thread, NULL, handler, NULL), 0);
    CHECK_EQ(strcmp(page(50), "was there"), 0);
    for (intptr_t i = 0; i < THREADS; i++) pthread_create(&touchers[i], NULL, toucher, (void*)i);
    for (int i = 0; i < THREADS; i++) pthread_join(touchers[i], NULL);
    CHECK(served >= 40);
    // The kernel's accesses wait as well.
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(write(ends[1], page(41), 10), 10);
    CHECK_EQ(read(ends[0], page(42) + 5, 10), 10);
    CHECK(page(42)[4] == 43 && page(42)[5] == 42 && page(42)[14] == 42 && page(42)[15] == 43);
    // Emptied, they are the handler's again.
    memset(page(7), 99, PAGE);
    CHECK_EQ(madvise(page(7), PAGE, MADV_DONTNEED), 0);
    CHECK_EQ(page(7)[1], 8);
    // Given back, it is memory like any other.
    struct uffdio_range back = {(uintptr_t)page(52), 4 * PAGE};
    CHECK_EQ(ioctl(uffd, UFFDIO_UNREGISTER, &back), 0);
    CHECK_EQ(page(53)[0], 0);
    CHECK_EQ(munmap(page(55), PAGE), 0);
    CHECK_EQ(pthread_create(&last, NULL, last_one, NULL), 0);
    pthread_join(thread, NULL);
    CHECK_EQ(close(uffd), 0);  // who still waits goes on
    pthread_join(last, NULL);
    CHECK_EQ(page(PAGES - 1)[0], 1);
    CHECK_EQ(page(PAGES - 2)[0], 0);
    return guest_passed();
}
