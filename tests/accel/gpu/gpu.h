// The runtime calls that CUDA and HIP name alike but for a prefix, so that one source serves both.
#pragma once

#include <cstdio>
#include <cstdlib>

#ifdef __HIPCC__
#include <hip/hip_runtime.h>
#define GPU(name) hip##name
#else
#include <cuda_runtime.h>
#define GPU(name) cuda##name
#endif

#define CHECK(call)                                                   \
    do {                                                              \
        GPU(Error_t) error_ = (call);                                 \
        if (error_ != GPU(Success)) {                                 \
            std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, \
                        GPU(GetErrorString)(error_));                 \
            std::exit(1);                                             \
        }                                                             \
    } while (0)

// Pinned memory of the host that the device sees, too: these names differ.
inline GPU(Error_t) host_alloc_mapped(void** memory, size_t bytes) {
#ifdef __HIPCC__
    return hipHostMalloc(memory, bytes, hipHostMallocMapped);
#else
    return cudaHostAlloc(memory, bytes, cudaHostAllocMapped);
#endif
}

inline GPU(Error_t) host_free(void* memory) {
#ifdef __HIPCC__
    return hipHostFree(memory);
#else
    return cudaFreeHost(memory);
#endif
}

// Where there is no device there is nothing to test.
inline void need_device() {
    int count = 0;
    if (GPU(GetDeviceCount)(&count) != GPU(Success) || count == 0) {
        std::puts("skipped: no device");
        std::exit(77);
    }
}

constexpr unsigned threads = 256;
inline unsigned blocks_for(size_t n) { return static_cast<unsigned>((n + threads - 1) / threads); }
