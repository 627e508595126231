// Pure computation on a few megabytes: sorting, hashing, matrices; for the CPU share.
#include "guest.h"

enum { COUNT = 400000, SIDE = 200 };
static uint32_t numbers[COUNT];
static double left[SIDE][SIDE], right[SIDE][SIDE], product[SIDE][SIDE];

static int compare(const void* a, const void* b) {
    uint32_t x = *(const uint32_t*)a, y = *(const uint32_t*)b;
    return (x > y) - (x < y);
}

int main(void) {
    uint64_t state = 1, hash = 14695981039346656037u;
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < COUNT; i++) numbers[i] = (uint32_t)guest_random(&state);
        qsort(numbers, COUNT, sizeof numbers[0], compare);
        for (int i = 0; i < COUNT; i++) hash = (hash ^ numbers[i]) * 1099511628211u;
    }
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) left[i][j] = i + j, right[i][j] = i - j;
    for (int round = 0; round < 10; round++)
        for (int i = 0; i < SIDE; i++)
            for (int j = 0; j < SIDE; j++)
                for (int k = 0; k < SIDE; k++) product[i][j] += left[i][k] * right[k][j];
    printf("%016llx %.0f\n", (unsigned long long)hash, product[17][55]);
    return guest_passed();
}
