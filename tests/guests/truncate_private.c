// A file that becomes shorter takes private pages beyond its end along, also those that were
// written; a hole leaves them.
#include <fcntl.h>
#include <sys/mman.h>

#include "guest.h"

enum { page = 4096, pages = 4 };

int main(void) {
    int file = memfd_create("file", 0);
    CHECK(file >= 0);
    CHECK_EQ(ftruncate(file, pages * page), 0);
    char* memory = mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    CHECK(memory != MAP_FAILED);
    for (int i = 0; i < pages; i++) memory[i * page] = (char)(i + 1);
    CHECK_EQ(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, page, page), 0);
    CHECK_EQ(memory[page], 2);
    CHECK_EQ(ftruncate(file, page), 0);
    CHECK_EQ(ftruncate(file, pages * page), 0);
    CHECK_EQ(memory[0], 1);
    for (int i = 1; i < pages; i++) CHECK_EQ(memory[i * page], 0);
    memory[page] = 9;
    CHECK_EQ(memory[page], 9);
    return guest_passed();
}
