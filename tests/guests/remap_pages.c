// remap_file_pages: parts of a shared mapping show other pages of the file.
#include <fcntl.h>
#include <sys/mman.h>

#include "guest.h"

enum { PAGE = 4096, PAGES = 16 };

// Volatile: two addresses may be one page.
static int first_of(const volatile char* memory, int page) { return memory[page * PAGE]; }

int main(void) {
    int fd = open("data", O_RDWR | O_CREAT, 0600);
    CHECK_EQ(ftruncate(fd, PAGES * PAGE), 0);
    char* memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    char* straight = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    char* private = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
    CHECK(memory != MAP_FAILED && straight != MAP_FAILED && private != MAP_FAILED);
    for (int i = 0; i < PAGES; i++) memset(memory + i * PAGE, i, PAGE);
    for (int i = 0; i < PAGES; i++) {
        CHECK_EQ(remap_file_pages(memory + i * PAGE, PAGE, 0, (size_t)(PAGES - 1 - i), 0), 0);
    }
    for (int i = 0; i < PAGES; i++) CHECK_EQ(first_of(memory, i), PAGES - 1 - i);
    memory[2 * PAGE] = 77;
    CHECK_EQ(first_of(straight, PAGES - 3), 77);
    straight[PAGE] = 78;
    CHECK_EQ(first_of(memory, PAGES - 2), 78);
    char byte;
    CHECK_EQ(pread(fd, &byte, 1, (PAGES - 3) * PAGE), 1);
    CHECK_EQ(byte, 77);
    CHECK_EQ(remap_file_pages(memory, PAGES * PAGE, 0, 0, 0), 0);  // several mappings by now
    CHECK(first_of(memory, 1) == 78 && first_of(memory, 5) == 5);
    CHECK_EQ(munmap(memory + 8 * PAGE, 8 * PAGE), 0);
    CHECK_EQ(remap_file_pages(straight + 4 * PAGE, 4 * PAGE, 0, 0, 0), 0);
    CHECK(first_of(straight, 4) == 0 && first_of(straight, 5) == 78 && first_of(straight, 6) == 2);
    CHECK_EQ(first_of(straight, 8), 8);
    CHECK_ERRNO(remap_file_pages(straight, PAGE, PROT_READ, 1, 0), EINVAL);
    CHECK_ERRNO(remap_file_pages(private, PAGE, 0, 1, 0), EINVAL);
    char* none = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 8; i++) none[i * PAGE] = (char)(i + 1);
    CHECK_EQ(remap_file_pages(none, PAGE, 0, 5, 0), 0);
    CHECK_EQ(none[0], 6);
    none[5 * PAGE] = 60;
    CHECK_EQ(first_of(none, 0), 60);
    return guest_passed();
}
