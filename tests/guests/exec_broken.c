// Programs that cannot be: what execve(2) refuses, and what it finds out too late to come back.
#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "guest.h"

struct program {
    Elf64_Ehdr head;
    Elf64_Phdr parts[3];
    char rest[64];
};

static struct program sound(void) {
    struct program p;
    memset(&p, 0, sizeof p);
    memcpy(p.head.e_ident, ELFMAG, SELFMAG);
    p.head.e_ident[EI_CLASS] = ELFCLASS64;
    p.head.e_ident[EI_DATA] = ELFDATA2LSB;
    p.head.e_ident[EI_VERSION] = EV_CURRENT;
    p.head.e_type = ET_EXEC;
    p.head.e_machine = EM_X86_64;
    p.head.e_version = EV_CURRENT;
    p.head.e_phoff = offsetof(struct program, parts);
    p.head.e_ehsize = sizeof p.head;
    p.head.e_phentsize = sizeof p.parts[0];
    p.head.e_phnum = 1;
    p.head.e_entry = 0x400000 + offsetof(struct program, rest);
    p.parts[0].p_type = PT_LOAD;
    p.parts[0].p_flags = PF_R | PF_X;
    p.parts[0].p_vaddr = p.parts[0].p_paddr = 0x400000;
    p.parts[0].p_filesz = p.parts[0].p_memsz = sizeof p;
    p.parts[0].p_align = 0x1000;
    static const unsigned char exits[] = {0xb8, 60, 0, 0, 0, 0xbf, 21, 0, 0, 0, 0x0f, 0x05};
    memcpy(p.rest, exits, sizeof exits);
    return p;
}

static void put(const void* bytes, size_t size) {
    unlink("program");
    int fd = open("program", O_WRONLY | O_CREAT | O_TRUNC, 0700);
    CHECK(fd >= 0);
    CHECK_EQ(write(fd, bytes, size), size);
    CHECK_EQ(close(fd), 0);
}

static void* sleeps(void* unused) {
    for (;;) pause();
    return unused;
}

static void try(const char* what, const void* bytes, size_t size) {
    put(bytes, size);
    for (int threads = 0; threads < 2; threads++) {
        int report[2];
        CHECK_EQ(pipe2(report, O_CLOEXEC), 0);
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            struct rlimit none = {0, 0};
            setrlimit(RLIMIT_CORE, &none);
            signal(SIGSEGV, SIG_IGN);
            pthread_t other;
            if (threads) CHECK_EQ(pthread_create(&other, NULL, sleeps, NULL), 0);
            execl("./program", "program", NULL);
            int error = errno;
            CHECK_EQ(write(report[1], &error, sizeof error), sizeof error);
            _exit(4);
        }
        close(report[1]);
        int error = 0, status = 0;
        read(report[0], &error, sizeof error);
        close(report[0]);
        CHECK_EQ(waitpid(child, &status, 0), child);
        printf("%s%s: errno %d, %s %d\n", what, threads ? ", with a thread" : "", error,
               WIFSIGNALED(status) ? "killed by" : "status",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        fflush(stdout);
    }
}

int main(void) {
    struct program p = sound();
    try("sound", &p, sizeof p);
    try("empty", &p, 0);
    try("short", &p, 20);
    try("only the head", &p, sizeof p.head);
    p.head.e_machine = EM_AARCH64;
    try("another machine", &p, sizeof p);
    p = sound();
    p.head.e_phnum = 0;
    try("no parts", &p, sizeof p);
    p = sound();
    p.head.e_phentsize = 3;
    try("odd parts", &p, sizeof p);
    p = sound();
    p.parts[0].p_vaddr = p.parts[0].p_paddr = 0xffff800000000000;
    try("in the kernel's part", &p, sizeof p);
    p = sound();
    p.parts[0].p_memsz = 0x800000000000;
    try("larger than all", &p, sizeof p);
    p = sound();
    p.parts[0].p_memsz = 16;
    try("less memory than file", &p, sizeof p);
    p = sound();
    p.parts[0].p_offset = 0x123;
    try("not aligned", &p, sizeof p);
    p = sound();
    p.head.e_entry = 0x900000;
    try("begins nowhere", &p, sizeof p);
    p = sound();
    p.parts[0].p_flags = PF_R;
    try("not executable", &p, sizeof p);
    p = sound();
    p.head.e_phnum = 2;
    p.parts[1] = p.parts[0];
    p.parts[1].p_vaddr = 0x7fffffffe000;
    p.parts[1].p_memsz = 0x10000;
    p.parts[1].p_flags = PF_R | PF_W;
    try("beyond the end", &p, sizeof p);
    p = sound();
    p.head.e_phnum = 2;
    p.parts[1].p_type = PT_INTERP;
    p.parts[1].p_offset = offsetof(struct program, rest) + 32;
    strcpy(p.rest + 32, "/nowhere/ld.so");
    p.parts[1].p_filesz = strlen("/nowhere/ld.so") + 1;
    try("no interpreter", &p, sizeof p);
    strcpy(p.rest + 32, "/etc/passwd");
    p.parts[1].p_filesz = strlen("/etc/passwd") + 1;
    try("a text as interpreter", &p, sizeof p);
    strcpy(p.rest + 32, "/bin/true");
    p.parts[1].p_filesz = strlen("/bin/true");
    try("name without an end", &p, sizeof p);
    static const char script[] = "#!/nowhere/sh\n";
    try("script without interpreter", script, sizeof script - 1);
    static const char text[] = "echo\n";
    try("text", text, sizeof text - 1);
    unlink("program");
    return guest_passed();
}
