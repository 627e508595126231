// Callbacks from the library, recursion between both sides, qsort with a callback from home.
#include "guest.h"
#include "libgprguest.h"

static long seen[1000];

static long callback(long value, void* argument) {
    seen[value]++;
    *(long*)argument += value;
    return value * 2;
}

static long bounce(long depth) { return depth <= 0 ? 0 : 1 + remote_recursion(bounce, depth - 1); }

static int compare(const void* a, const void* b) { return *(const int*)a - *(const int*)b; }

int main(void) {
    long total = 0;
    CHECK_EQ(remote_callback(callback, &total, 1000), 999 * 1000);
    CHECK_EQ(total, 999 * 1000 / 2);
    for (int i = 0; i < 1000; i++) CHECK_EQ(seen[i], 1);
    for (int depth = 0; depth < 200; depth += 20) CHECK_EQ(remote_recursion(bounce, depth), depth);
    int values[300];
    uint64_t state = 5;
    for (int i = 0; i < 300; i++) values[i] = (int)(guest_random(&state) % 10000);
    remote_qsort(values, 300, compare);
    for (int i = 1; i < 300; i++) CHECK(values[i - 1] <= values[i]);
    return guest_passed();
}
