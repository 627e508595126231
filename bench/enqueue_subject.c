// enqueue_subject KERNELS LOG: launches that many small kernels one after the other, each with an
// argument of its own, and waits for them at the end. LOG: a line is written to it for each launch;
// "-" for none. Prints what was computed, then "calls N ns N": what the loop took and its calls of
// the API.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char* source =
    "__kernel void add(__global int* x, int number) { x[get_global_id(0)] += number; }\n";

enum { items = 64, line_size = 64 };

static void check(cl_int error, const char* what) {
    if (error == CL_SUCCESS) return;
    fprintf(stderr, "%s: error %d\n", what, error);
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

int main(int argc, char** argv) {
    if (argc != 3) return fprintf(stderr, "usage: enqueue_subject KERNELS LOG\n"), 2;
    int kernels = atoi(argv[1]);
    FILE* log = strcmp(argv[2], "-") == 0 ? NULL : fopen(argv[2], "w");
    if (log) setvbuf(log, NULL, _IONBF, 0);
    cl_platform_id platform;
    cl_device_id device;
    cl_int error = clGetPlatformIDs(1, &platform, NULL);
    check(error, "no platform");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "no device");
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    check(error, "context");
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &error);
    check(error, "queue");
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &error);
    check(error, "program");
    check(clBuildProgram(program, 1, &device, "", NULL, NULL), "build");
    cl_kernel kernel = clCreateKernel(program, "add", &error);
    check(error, "kernel");
    int numbers[items] = {0};
    cl_mem x = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof numbers,
                              numbers, &error);
    check(error, "buffer");
    check(clSetKernelArg(kernel, 0, sizeof x, &x), "argument");
    size_t global = items;
    // The first one may build what it needs.
    int zero = 0;
    check(clSetKernelArg(kernel, 1, sizeof zero, &zero), "argument");
    check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL), "launch");
    check(clFinish(queue), "finish");

    uint64_t begin = now_ns();
    for (int i = 0; i < kernels; i++) {
        check(clSetKernelArg(kernel, 1, sizeof i, &i), "argument");
        check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL),
              "launch");
        if (log) fprintf(log, "launch %*d\n", line_size - 8, i);
    }
    check(clFinish(queue), "finish");
    uint64_t took = now_ns() - begin;

    check(clEnqueueReadBuffer(queue, x, CL_TRUE, 0, sizeof numbers, numbers, 0, NULL, NULL),
          "read");
    printf("%d\n", numbers[items - 1]);
    printf("calls %d ns %llu\n", 2 * kernels + 1, (unsigned long long)took);
    return 0;
}
