// Every kind of host memory that a device reaches: pageable, pinned, mapped, registered, managed.
#include <cstring>
#include <vector>

#include "gpu.h"

__global__ void scale(float* x, float by, size_t n) {
    size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
    if (i < n) x[i] *= by;
}

static void launch(float* on_device, float by, size_t n) {
    scale<<<blocks_for(n), threads>>>(on_device, by, n);
    CHECK(GPU(GetLastError)());
    CHECK(GPU(DeviceSynchronize)());
}

static void report(const char* kind, const float* x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i];
    std::printf("%s: %.0f\n", kind, sum);
}

static void fill(float* x, size_t n) {
    for (size_t i = 0; i < n; i++) x[i] = static_cast<float>(i % 100);
}

int main() {
    need_device();
    constexpr size_t n = 1 << 20, bytes = n * sizeof(float);
    float* device = nullptr;
    CHECK(GPU(Malloc)(&device, bytes));

    std::vector<float> pageable(n);
    fill(pageable.data(), n);
    CHECK(GPU(Memcpy)(device, pageable.data(), bytes, GPU(MemcpyHostToDevice)));
    launch(device, 2, n);
    CHECK(GPU(Memcpy)(pageable.data(), device, bytes, GPU(MemcpyDeviceToHost)));
    report("pageable", pageable.data(), n);

    float* pinned = nullptr;
    CHECK(host_alloc_mapped(reinterpret_cast<void**>(&pinned), bytes));
    fill(pinned, n);
    float* seen = nullptr;
    CHECK(GPU(HostGetDevicePointer)(reinterpret_cast<void**>(&seen), pinned, 0));
    for (int round = 1; round <= 3; round++) {  // both sides write it in turn
        launch(seen, 3, n);
        for (size_t i = 0; i < n; i++) pinned[i] += 1;
    }
    report("pinned", pinned, n);
    CHECK(host_free(pinned));

    std::vector<float> registered(n);
    fill(registered.data(), n);
    CHECK(GPU(HostRegister)(registered.data(), bytes, GPU(HostRegisterMapped)));
    CHECK(GPU(HostGetDevicePointer)(reinterpret_cast<void**>(&seen), registered.data(), 0));
    launch(seen, 5, n);
    CHECK(GPU(HostUnregister)(registered.data()));
    report("registered", registered.data(), n);

    float* managed = nullptr;
    CHECK(GPU(MallocManaged)(reinterpret_cast<void**>(&managed), bytes));
    fill(managed, n);
    for (int round = 1; round <= 3; round++) {
        launch(managed, 2, n);
        managed[0] += 1;
    }
    report("managed", managed, n);
    CHECK(GPU(Free)(managed));
    CHECK(GPU(Free)(device));
    return 0;
}
