// Instructions that touch two pages: straddling loads, stores, locked adds and string copies.
#include <sys/mman.h>

#include "guest.h"

enum { PAGES = 128, PAGE = 4096 };

int main(void) {
    char* a = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char* b = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 1; i < PAGES; i++) {
        uint64_t* word = (uint64_t*)(a + i * PAGE - 3);
        *word = 0x0102030405060708u * (unsigned)(i % 7);
        __atomic_fetch_add(word, 5, __ATOMIC_SEQ_CST);
        CHECK(*word == 0x0102030405060708u * (unsigned)(i % 7) + 5);
        if (i % 16 == 0) CHECK_EQ(getppid() > 0, 1);
    }
    char* from = a + 1;
    char* to = b + PAGE - 7;
    size_t count = 100 * PAGE;
    __asm__ volatile("rep movsb" : "+S"(from), "+D"(to), "+c"(count)::"memory");
    CHECK(memcmp(a + 1, b + PAGE - 7, 100 * PAGE) == 0);
    to = b + 13;
    count = 100 * PAGE / 8;
    __asm__ volatile("rep stosq" : "+D"(to), "+c"(count) : "a"(0x4142434445464748) : "memory");
    for (int i = 0; i < 100 * PAGE; i += 1000) CHECK_EQ(b[13 + i], 0x48 - i % 8);
    return guest_passed();
}
