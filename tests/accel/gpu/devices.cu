// Every device does a part; a copy goes round all of them.
#include <vector>

#include "gpu.h"

__global__ void mark(int* x, int with, size_t n) {
    size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (i < n) x[i] = x[i] * 10 + with;
}

int main() {
    need_device();
    constexpr size_t n = 1 << 16, bytes = n * sizeof(int);
    int count = 0;
    CHECK(GPU(GetDeviceCount)(&count));
    std::printf("devices: %d\n", count);
    std::vector<int*> part(static_cast<size_t>(count));
    for (int d = 0; d < count; d++) {
        CHECK(GPU(SetDevice)(d));
        CHECK(GPU(Malloc)(reinterpret_cast<void**>(&part[d]), bytes));
        CHECK(GPU(Memset)(part[d], 0, bytes));
    }
    for (int d = 0; d < count; d++) {
        CHECK(GPU(SetDevice)(d));
        mark<<<blocks_for(n), threads>>>(part[d], d % 10, n);
        CHECK(GPU(DeviceSynchronize)());
        int next = (d + 1) % count;
        if (next != d) CHECK(GPU(MemcpyPeer)(part[next], next, part[d], d, bytes));
    }
    CHECK(GPU(SetDevice)(0));
    int last = -1;
    CHECK(GPU(Memcpy)(&last, part[0] + n - 1, sizeof last, GPU(MemcpyDeviceToHost)));
    std::printf("went round: %s\n", count == 1 ? (last == 0 ? "yes" : "no") : (last >= 0 ? "yes" : "no"));
    for (int d = 0; d < count; d++) {
        CHECK(GPU(SetDevice)(d));
        CHECK(GPU(Free)(part[d]));
    }
    return 0;
}
