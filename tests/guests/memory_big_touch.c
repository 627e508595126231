// 256 MiB are touched, checked and given back.
#include <sys/mman.h>

#include "guest.h"

int main(void) {
    size_t size = 256u << 20;
    uint64_t* memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    uint64_t sum = 0;
    for (size_t i = 0; i < size / 8; i += 512) memory[i] = i * 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < size / 8; i += 512) sum += memory[i] ^ memory[i + 1];
    for (size_t i = 0; i < size / 8; i += 512) CHECK(memory[i] == i * 0x9e3779b97f4a7c15u);
    printf("sum %016llx\n", (unsigned long long)sum);
    CHECK_EQ(munmap(memory, size), 0);
    return guest_passed();
}
