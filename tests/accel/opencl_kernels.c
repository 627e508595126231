// Builds a program from source, runs kernels with events, callbacks, mapped and host-backed
// buffers, and prints results that every OpenCL device agrees on.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char* source =
    "__kernel void scale_add(__global const float* a, __global const float* b,\n"
    "                        __global float* c) {\n"
    "    size_t i = get_global_id(0);\n"
    "    c[i] = a[i] * 2.0f + b[i];\n"
    "}\n"
    "__kernel void increment(__global int* x) { x[get_global_id(0)] += 1; }\n"
    "__kernel void group_sum(__global const int* x, __global int* sums, __local int* part) {\n"
    "    size_t l = get_local_id(0);\n"
    "    part[l] = x[get_global_id(0)];\n"
    "    for (size_t step = get_local_size(0) / 2; step > 0; step /= 2) {\n"
    "        barrier(CLK_LOCAL_MEM_FENCE);\n"
    "        if (l < step) part[l] += part[l + step];\n"
    "    }\n"
    "    if (l == 0) sums[get_group_id(0)] = part[0];\n"
    "}\n";

#define OK(call)                                     \
    do {                                             \
        cl_int error_ = (call);                      \
        if (error_ != CL_SUCCESS) {                  \
            printf("%s: error %d\n", #call, error_); \
            exit(1);                                 \
        }                                            \
    } while (0)
// The last argument of creating calls is &error.
#define MADE(what)                                  \
    do {                                            \
        if (error != CL_SUCCESS) {                  \
            printf("%s: error %d\n", #what, error); \
            exit(1);                                \
        }                                           \
    } while (0)

enum { small = 64, group = 16 };

static volatile int completed;

static void CL_CALLBACK on_complete(cl_event event, cl_int status, void* data) {
    (void)event;
    if (status == CL_COMPLETE) *(volatile int*)data += 1;
}

static cl_program build(cl_context context, cl_device_id device) {
    cl_int error;
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &error);
    MADE(program);
    error = clBuildProgram(program, 1, &device, "", NULL, NULL);
    if (error != CL_SUCCESS) {
        static char log[16384];
        clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL);
        printf("build: error %d\n%s\n", error, log);
        exit(1);
    }
    return program;
}

static void scale_add(cl_context context, cl_command_queue queue, cl_program program, int n) {
    cl_int error;
    size_t bytes = (size_t)n * sizeof(float), items = (size_t)n;
    float *a = malloc(bytes), *b = malloc(bytes), *c = malloc(bytes);
    for (int i = 0; i < n; i++) {
        a[i] = (float)(i % 1000);
        b[i] = 1.0f;
    }
    cl_mem in = clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, bytes, a, &error);
    MADE(in);
    cl_mem host = clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR, bytes, b, &error);
    MADE(host);
    cl_mem out = clCreateBuffer(context, CL_MEM_WRITE_ONLY, bytes, NULL, &error);
    MADE(out);
    cl_kernel kernel = clCreateKernel(program, "scale_add", &error);
    MADE(kernel);
    OK(clSetKernelArg(kernel, 0, sizeof in, &in));
    OK(clSetKernelArg(kernel, 1, sizeof host, &host));
    OK(clSetKernelArg(kernel, 2, sizeof out, &out));
    cl_event done;
    OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, &done));
    OK(clSetEventCallback(done, CL_COMPLETE, on_complete, (void*)&completed));
    OK(clEnqueueReadBuffer(queue, out, CL_TRUE, 0, bytes, c, 1, &done, NULL));
    OK(clFinish(queue));
    double sum = 0;
    for (int i = 0; i < n; i++) sum += c[i];
    printf("scale_add of %d: %.0f\n", n, sum);
    OK(clReleaseEvent(done));
    OK(clReleaseMemObject(in));
    OK(clReleaseMemObject(host));
    OK(clReleaseMemObject(out));
    OK(clReleaseKernel(kernel));
    free(a), free(b), free(c);
}

static void increments(cl_context context, cl_command_queue queue, cl_program program, int times) {
    cl_int error;
    int zeros[small] = {0}, sums[small / group];
    size_t items = small, local = group;
    cl_mem x = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof zeros,
                              zeros, &error);
    MADE(x);
    cl_kernel kernel = clCreateKernel(program, "increment", &error);
    MADE(kernel);
    OK(clSetKernelArg(kernel, 0, sizeof x, &x));
    for (int i = 0; i < times; i++) {
        OK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
    }
    int* seen = clEnqueueMapBuffer(queue, x, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, sizeof zeros,
                                   0, NULL, NULL, &error);
    MADE(seen);
    printf("incremented %d times: %d %d\n", times, seen[0], seen[small - 1]);
    for (int i = 0; i < small; i++) seen[i] = i;
    OK(clEnqueueUnmapMemObject(queue, x, seen, 0, NULL, NULL));
    cl_mem totals = clCreateBuffer(context, CL_MEM_WRITE_ONLY, sizeof sums, NULL, &error);
    MADE(totals);
    cl_kernel adder = clCreateKernel(program, "group_sum", &error);
    MADE(adder);
    OK(clSetKernelArg(adder, 0, sizeof x, &x));
    OK(clSetKernelArg(adder, 1, sizeof totals, &totals));
    OK(clSetKernelArg(adder, 2, group * sizeof(int), NULL));
    OK(clEnqueueNDRangeKernel(queue, adder, 1, NULL, &items, &local, 0, NULL, NULL));
    OK(clEnqueueReadBuffer(queue, totals, CL_TRUE, 0, sizeof sums, sums, 0, NULL, NULL));
    for (int i = 0; i < small / group; i++) printf("group %d: %d\n", i, sums[i]);
    OK(clReleaseMemObject(x));
    OK(clReleaseMemObject(totals));
    OK(clReleaseKernel(kernel));
    OK(clReleaseKernel(adder));
}

int main(int argc, char** argv) {
    int n = argc > 1 ? atoi(argv[1]) : 10000, times = argc > 2 ? atoi(argv[2]) : 100;
    cl_platform_id platform;
    cl_device_id device;
    cl_int error;
    char name[256];
    OK(clGetPlatformIDs(1, &platform, NULL));
    OK(clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name, name, NULL));
    printf("platform: %s\n", name);
    OK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    MADE(context);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &error);
    MADE(queue);
    cl_program program = build(context, device);
    scale_add(context, queue, program, n);
    increments(context, queue, program, times);
    OK(clFinish(queue));
    for (int wait = 0; completed == 0 && wait < 100000000; wait++) {
    }
    printf("callbacks: %d\n", completed);
    OK(clReleaseProgram(program));
    OK(clReleaseCommandQueue(queue));
    OK(clReleaseContext(context));
    return 0;
}
