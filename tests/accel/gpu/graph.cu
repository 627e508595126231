// A graph captured from a stream and launched many times.
#include "gpu.h"

__global__ void step(int* x, size_t n) {
    size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (i < n) x[i] = x[i] * 3 + 1;
}

int main() {
    need_device();
    constexpr size_t n = 1 << 16;
    constexpr int steps = 10, launches = 100;
    int* x = nullptr;
    CHECK(GPU(Malloc)(&x, n * sizeof(int)));
    CHECK(GPU(Memset)(x, 0, n * sizeof(int)));
    GPU(Stream_t) stream;
    CHECK(GPU(StreamCreate)(&stream));
    GPU(Graph_t) graph;
    CHECK(GPU(StreamBeginCapture)(stream, GPU(StreamCaptureModeGlobal)));
    for (int i = 0; i < steps; i++) step<<<blocks_for(n), threads, 0, stream>>>(x, n);
    CHECK(GPU(StreamEndCapture)(stream, &graph));
    GPU(GraphExec_t) ready;
    CHECK(GPU(GraphInstantiateWithFlags)(&ready, graph, 0));
    for (int i = 0; i < launches; i++) CHECK(GPU(GraphLaunch)(ready, stream));
    CHECK(GPU(StreamSynchronize)(stream));
    int ends[2];
    CHECK(GPU(Memcpy)(&ends[0], x, sizeof(int), GPU(MemcpyDeviceToHost)));
    CHECK(GPU(Memcpy)(&ends[1], x + n - 1, sizeof(int), GPU(MemcpyDeviceToHost)));
    std::printf("after %d steps: %d %d\n", steps * launches, ends[0], ends[1]);
    CHECK(GPU(GraphExecDestroy)(ready));
    CHECK(GPU(GraphDestroy)(graph));
    CHECK(GPU(StreamDestroy)(stream));
    CHECK(GPU(Free)(x));
    return 0;
}
