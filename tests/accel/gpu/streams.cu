// Asynchronous launches on several streams, ordered by events, with host callbacks between.
#include <atomic>

#include "gpu.h"

__global__ void add(int* x, int what, size_t n) {
    size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (i < n) x[i] += what;
}

static std::atomic<int> callbacks;
static void on_host(GPU(Stream_t), GPU(Error_t) error, void* weight) {
    if (error == GPU(Success)) callbacks += *static_cast<int*>(weight);
}

int main() {
    need_device();
    constexpr size_t n = 1 << 20;
    constexpr int streams = 4, launches = 1000;
    int* x[streams];
    int weights[streams];
    GPU(Stream_t) stream[streams];
    GPU(Event_t) done[streams];
    for (int s = 0; s < streams; s++) {
        weights[s] = 1 << s;
        CHECK(GPU(StreamCreate)(&stream[s]));
        CHECK(GPU(EventCreate)(&done[s]));
        CHECK(GPU(Malloc)(&x[s], n * sizeof(int)));
        CHECK(GPU(MemsetAsync)(x[s], 0, n * sizeof(int), stream[s]));
    }
    for (int i = 0; i < launches; i++) {
        for (int s = 0; s < streams; s++) {
            add<<<blocks_for(n), threads, 0, stream[s]>>>(x[s], s + 1, n);
        }
    }
    for (int s = 0; s < streams; s++) {
        CHECK(GPU(StreamAddCallback)(stream[s], on_host, &weights[s], 0));
        CHECK(GPU(EventRecord)(done[s], stream[s]));
        // Each stream goes on behind the one before.
        if (s > 0) CHECK(GPU(StreamWaitEvent)(stream[s], done[s - 1], 0));
    }
    for (int s = 0; s < streams; s++) {
        CHECK(GPU(StreamSynchronize)(stream[s]));
        int ends[2];
        CHECK(GPU(Memcpy)(&ends[0], x[s], sizeof(int), GPU(MemcpyDeviceToHost)));
        CHECK(GPU(Memcpy)(&ends[1], x[s] + n - 1, sizeof(int), GPU(MemcpyDeviceToHost)));
        std::printf("stream %d: %d %d\n", s, ends[0], ends[1]);
        CHECK(GPU(Free)(x[s]));
        CHECK(GPU(EventDestroy)(done[s]));
        CHECK(GPU(StreamDestroy)(stream[s]));
    }
    std::printf("callbacks: %d\n", callbacks.load());
    return 0;
}
