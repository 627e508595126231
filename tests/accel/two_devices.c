// One process that computes with OpenCL and runs a virtual machine, by turns: the two devices may
// be of two hosts.
#define main opencl_main
#include "opencl_kernels.c"
#undef main
#undef OK
#define main kvm_main
#include "kvm_rounds.c"
#undef main

int main(void) {
    char* kvm_arguments[] = {"kvm", "private", "4", NULL};
    char* opencl_arguments[] = {"opencl", NULL};
    for (int turn = 0; turn < 2; turn++) {
        int status = opencl_main(1, opencl_arguments);
        if (status == 0) status = kvm_main(3, kvm_arguments);
        if (status != 0) return status;
    }
    return 0;
}
