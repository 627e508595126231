// Makes a virtual machine with one processor and 16 KiB of memory and runs a few instructions in
// it, several times; both sides write the memory between the runs.
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

static long checked(long result, const char* what) {
    if (result >= 0) return result;
    printf("%s: %s\n", what, strerror(errno));
    exit(1);
}
#define OK(call) checked(call, #call)

enum { memory_size = 0x4000, base = 0x1000, counter = 0x1000 };

static const uint8_t code[] = {
    0xba, 0xf8, 0x03,  // mov $0x3f8, %dx
    0x00, 0xd8,        // add %bl, %al
    0x04, '0',         // add $'0', %al
    0xee,              // out %al, (%dx)
    0xb0, '\n',        // mov $'\n', %al
    0xee,              // out %al, (%dx)
    0xa1, 0x00, 0x20,  // mov 0x2000, %ax
    0x40,              // inc %ax
    0xa3, 0x00, 0x20,  // mov %ax, 0x2000
    0xf4,              // hlt
};

static void run_until_halt(int cpu, struct kvm_run* state) {
    for (;;) {
        OK(ioctl(cpu, KVM_RUN, 0));
        switch (state->exit_reason) {
            case KVM_EXIT_HLT: return;
            case KVM_EXIT_IO:
                fwrite((char*)state + state->io.data_offset, state->io.size, state->io.count,
                       stdout);
                break;
            default: printf("exit %u\n", state->exit_reason); exit(1);
        }
    }
}

int main(int argc, char** argv) {
    int sharing = argc > 1 && strcmp(argv[1], "shared") == 0 ? MAP_SHARED : MAP_PRIVATE;
    int rounds = argc > 2 ? atoi(argv[2]) : 8;
    int kvm = (int)OK(open("/dev/kvm", O_RDWR | O_CLOEXEC));
    printf("version %ld\n", OK(ioctl(kvm, KVM_GET_API_VERSION, 0)));
    int machine = (int)OK(ioctl(kvm, KVM_CREATE_VM, 0));
    uint8_t* memory =
        mmap(NULL, memory_size, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
    memcpy(memory, code, sizeof code);
    struct kvm_userspace_memory_region region = {
        .guest_phys_addr = base, .memory_size = memory_size, .userspace_addr = (uintptr_t)memory};
    OK(ioctl(machine, KVM_SET_USER_MEMORY_REGION, &region));
    int cpu = (int)OK(ioctl(machine, KVM_CREATE_VCPU, 0));
    size_t size = (size_t)OK(ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0));
    struct kvm_run* state = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, cpu, 0);
    if (state == MAP_FAILED) checked(-1, "mmap of the processor");
    struct kvm_sregs segments;
    OK(ioctl(cpu, KVM_GET_SREGS, &segments));
    segments.cs.base = segments.cs.selector = 0;
    OK(ioctl(cpu, KVM_SET_SREGS, &segments));
    for (int round = 0; round < rounds; round++) {
        uint16_t value = (uint16_t)(round * 100);
        memcpy(memory + counter, &value, sizeof value);
        struct kvm_regs registers = {
            .rip = base, .rax = 2, .rbx = (unsigned)round % 8, .rflags = 2};
        OK(ioctl(cpu, KVM_SET_REGS, &registers));
        run_until_halt(cpu, state);
        memcpy(&value, memory + counter, sizeof value);
        printf("round %u: the guest left %u\n", round, value);
    }
    munmap(state, size);
    return 0;
}
