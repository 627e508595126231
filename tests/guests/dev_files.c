// /dev/null, /dev/zero (read and mapped), /dev/full, /dev/urandom and getrandom.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "guest.h"

int main(void) {
    char bytes[1000];
    memset(bytes, 1, sizeof bytes);
    int null = open("/dev/null", O_RDWR), zero = open("/dev/zero", O_RDWR);
    int full = open("/dev/full", O_RDWR), random = open("/dev/urandom", O_RDONLY);
    CHECK(null >= 0 && zero >= 0 && full >= 0 && random >= 0);
    CHECK_EQ(write(null, bytes, sizeof bytes), sizeof bytes);
    CHECK_EQ(read(null, bytes, sizeof bytes), 0);
    CHECK_EQ(read(zero, bytes, sizeof bytes), sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++) CHECK_EQ(bytes[i], 0);
    CHECK_ERRNO(write(full, bytes, 1), ENOSPC);
    CHECK_EQ(read(random, bytes, sizeof bytes), sizeof bytes);
    CHECK_EQ(getrandom(bytes, 500, 0), 500);
    int different = 0;
    for (int i = 0; i < 500; i++) different += bytes[i] != bytes[i + 500];
    CHECK(different > 400);
    char* private = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE, zero, 0);
    CHECK(private != MAP_FAILED && private[5000] == 0);
    private[5000] = 'z';
    CHECK_EQ(pread(zero, bytes, 1, 5000), 1);
    CHECK_EQ(bytes[0], 0);
    return guest_passed();
}
