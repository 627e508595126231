// A libamdhip64.so with one device. Declarations after the "HIP Runtime API Reference".
#include <stddef.h>
#include <stdio.h>

enum { SUCCESS = 0 };

int hipGetDeviceCount(int* count) {
    *count = 1;
    return SUCCESS;
}

int hipRuntimeGetVersion(int* version) {
    *version = 60000000;
    return SUCCESS;
}

int hipDeviceGetName(char* name, int length, int device) {
    snprintf(name, (size_t)length, "Imaginary Instinct %d", device);
    return SUCCESS;
}

int hipDeviceTotalMem(size_t* bytes, int device) {
    *bytes = ((size_t)device + 64) << 30;
    return SUCCESS;
}

int hipDeviceGetPCIBusId(char* text, int length, int device) {
    snprintf(text, (size_t)length, "0000:0%d:00.0", device + 3);
    return SUCCESS;
}
