// PROCMAP_QUERY (proc_pid_maps(5), Linux 6.11): an open /proc/PID/maps answers for the memory as it
// is now, of the process itself and of a child, and no other file does.
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "guest.h"

enum { PAGE = 4096 };
enum { READABLE = 1, WRITABLE = 2, EXECUTABLE = 4, SHARED = 8, OR_NEXT = 16, OF_FILE = 32 };

struct query {
    uint64_t size, flags, address, begin, end, vma_flags, page_size, offset, inode;
    uint32_t major, minor, name_size, id_size;
    uint64_t name, id;
};
#define QUERY _IOWR('f', 17, struct query)

static struct query about(const void* address, uint64_t flags) {
    struct query q = {.size = sizeof q, .flags = flags, .address = (uintptr_t)address};
    return q;
}

static void errors(int maps, char* memory) {
    struct query q = about(memory, 0);
    CHECK_ERRNO(ioctl(maps, QUERY, NULL), EFAULT);
    q.size = 8;
    CHECK_ERRNO(ioctl(maps, QUERY, &q), EINVAL);
    q.size = PAGE + 1;
    CHECK_ERRNO(ioctl(maps, QUERY, &q), E2BIG);
    struct {
        struct query q;
        uint64_t more;
    } longer = {about(memory, 0), 0};
    longer.q.size = sizeof longer;
    CHECK_EQ(ioctl(maps, QUERY, &longer), 0);
    longer.more = 1;
    CHECK_ERRNO(ioctl(maps, QUERY, &longer), E2BIG);
    q = about(memory, 64);
    CHECK_ERRNO(ioctl(maps, QUERY, &q), EINVAL);
    q = about(memory, 0);
    q.name_size = 10;
    CHECK_ERRNO(ioctl(maps, QUERY, &q), EINVAL);
    q = about(memory, 0);
    q.id = (uintptr_t)&q;
    CHECK_ERRNO(ioctl(maps, QUERY, &q), EINVAL);
    q = about((void*)8, 0);
    CHECK_ERRNO(ioctl(maps, QUERY, &q), ENOENT);
    q = about((void*)(1UL << 46 | 1UL << 47), OR_NEXT);
    q.address = ~0UL;
    CHECK_ERRNO(ioctl(maps, QUERY, &q), ENOENT);
    // The size tells how much of it there is.
    q = about(memory, 0);
    q.size = offsetof(struct query, vma_flags);
    q.inode = 77;
    CHECK_EQ(ioctl(maps, QUERY, &q), 0);
    CHECK_EQ(q.begin, (uintptr_t)memory);
    CHECK_EQ(q.inode, 77);
    int other = open("/proc/self/status", O_RDONLY), memfd = memfd_create("shown", 0);
    q = about(memory, 0);
    CHECK_ERRNO(ioctl(other, QUERY, &q), ENOTTY);
    CHECK_ERRNO(ioctl(memfd, QUERY, &q), ENOTTY);
    CHECK_ERRNO(ioctl(-1, QUERY, &q), EBADF);
    CHECK_EQ(close(other) | close(memfd), 0);
}

static void own_memory(int maps, char* memory) {
    struct query q = about(memory + PAGE + 5, 0);
    CHECK_EQ(ioctl(maps, QUERY, &q), 0);
    CHECK_EQ(q.begin, (uintptr_t)memory);
    CHECK_EQ(q.end, (uintptr_t)memory + 2 * PAGE);
    CHECK_EQ(q.vma_flags, READABLE | WRITABLE);
    CHECK_EQ(q.page_size, PAGE);
    CHECK_EQ(q.offset | q.inode | q.major | q.minor | q.name_size | q.id_size, 0);
    // It is not of the moment when the file was opened.
    CHECK_EQ(mprotect(memory, PAGE, PROT_READ), 0);
    q = about(memory, 0);
    CHECK_EQ(ioctl(maps, QUERY, &q), 0);
    CHECK_EQ(q.end, (uintptr_t)memory + PAGE);
    CHECK_EQ(q.vma_flags, READABLE);
    q = about(memory, READABLE | WRITABLE);
    CHECK_ERRNO(ioctl(maps, QUERY, &q), ENOENT);
    q = about(memory, READABLE | WRITABLE | OR_NEXT);
    CHECK_EQ(ioctl(maps, QUERY, &q), 0);
    CHECK_EQ(q.begin, (uintptr_t)memory + PAGE);
    q = about(memory - PAGE, 0);
    CHECK_ERRNO(ioctl(maps, QUERY, &q), ENOENT);
    q = about(memory - PAGE, OR_NEXT);
    CHECK_EQ(ioctl(maps, QUERY, &q), 0);
    CHECK_EQ(q.begin, (uintptr_t)memory);
    CHECK_EQ(mprotect(memory, PAGE, PROT_READ | PROT_WRITE), 0);
}

static void files(int maps) {
    int fd = open("data", O_RDWR | O_CREAT, 0600);
    CHECK_EQ(ftruncate(fd, 3 * PAGE), 0);
    char* shown = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, PAGE);
    char* own = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 2 * PAGE);
    own[0] = 1;
    char name[PAGE] = "";
    struct query q = about(shown, OF_FILE | SHARED);
    q.name = (uintptr_t)name;
    q.name_size = sizeof name;
    CHECK_EQ(ioctl(maps, QUERY, &q), 0);
    CHECK_EQ(q.vma_flags, READABLE | SHARED);
    CHECK_EQ(q.offset, PAGE);
    CHECK_EQ(q.name_size, strlen(name) + 1);
    CHECK(strcmp(strrchr(name, '/'), "/data") == 0);
    uint64_t inode = q.inode;
    CHECK(inode != 0);
    q = about(own, OF_FILE);
    q.name = (uintptr_t)name;
    q.name_size = sizeof name;
    CHECK_EQ(ioctl(maps, QUERY, &q), 0);
    CHECK_EQ(q.vma_flags, READABLE | WRITABLE);
    CHECK_EQ(q.offset, 2 * PAGE);
    CHECK_EQ(q.inode, inode);
    q = about(own, 0);
    q.name = (uintptr_t)name;
    q.name_size = 4;
    CHECK_ERRNO(ioctl(maps, QUERY, &q), ENAMETOOLONG);
    int local = 0;
    q = about(&local, 0);
    q.name = (uintptr_t)name;
    q.name_size = sizeof name;
    CHECK_EQ(ioctl(maps, QUERY, &q), 0);
    CHECK(strcmp(name, "[stack]") == 0);
    CHECK_EQ(q.name_size, 8);
    CHECK_EQ(munmap(shown, PAGE) | munmap(own, PAGE) | close(fd), 0);
}

static int note_id(struct dl_phdr_info* info, size_t size, void* into) {
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_NOTE) continue;
        const char* at = (const char*)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        const char* end = at + info->dlpi_phdr[i].p_filesz;
        while (at < end) {
            const Elf64_Nhdr* note = (const Elf64_Nhdr*)at;
            const char* content = at + sizeof *note + ((note->n_namesz + 3) & ~3u);
            if (note->n_type == NT_GNU_BUILD_ID) {
                memcpy(into, content, note->n_descsz);
                return (int)note->n_descsz;
            }
            at = content + ((note->n_descsz + 3) & ~3u);
        }
    }
    return -1;  // of the program itself, which comes first
}

static void build_id(int maps) {
    unsigned char own[64], told[64];
    int size = dl_iterate_phdr(note_id, own);
    struct query q = about((void*)build_id, EXECUTABLE | OF_FILE);
    q.id = (uintptr_t)told;
    q.id_size = sizeof told;
    CHECK_EQ(ioctl(maps, QUERY, &q), 0);
    CHECK_EQ(q.vma_flags, READABLE | EXECUTABLE);
    CHECK_EQ(q.id_size, size > 0 ? size : 0);
    if (size > 0) CHECK_EQ(memcmp(own, told, (size_t)size), 0);
    q = about(&q, 0);
    q.id = (uintptr_t)told;
    q.id_size = sizeof told;
    CHECK_EQ(ioctl(maps, QUERY, &q), 0);
    CHECK_EQ(q.id_size, 0);
}

static void of_child(int parents_maps, char* memory, int age_us) {
    int ready[2], done[2];
    CHECK(pipe(ready) == 0 && pipe(done) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        usleep((useconds_t)age_us);
        CHECK_EQ(munmap(memory, PAGE), 0);
        struct query q = about(memory, 0);  // the parent still has it
        CHECK_EQ(ioctl(parents_maps, QUERY, &q), 0);
        CHECK_EQ(q.end, (uintptr_t)memory + 2 * PAGE);
        int own = open("/proc/self/maps", O_RDONLY);
        CHECK_ERRNO(ioctl(own, QUERY, &q), ENOENT);
        char byte = 0;
        CHECK_EQ(write(ready[1], &byte, 1), 1);
        CHECK_EQ(read(done[0], &byte, 1), 1);
        _exit(0);
    }
    CHECK_EQ(close(ready[1]) | close(done[0]), 0);
    char byte = 0, name[64];
    CHECK_EQ(read(ready[0], &byte, 1), 1);
    snprintf(name, sizeof name, "/proc/%d/maps", child);
    int maps = open(name, O_RDONLY);
    struct query q = about(memory, OR_NEXT);
    CHECK_EQ(ioctl(maps, QUERY, &q), 0);
    CHECK_EQ(q.begin, (uintptr_t)memory + PAGE);
    CHECK_EQ(write(done[1], &byte, 1), 1);
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_ERRNO(ioctl(maps, QUERY, &q), ESRCH);
    CHECK_EQ(close(maps) | close(ready[0]) | close(done[1]), 0);
}

int main(int count, char** arguments) {
    if (count > 1) {  // the image that the file was opened for is gone
        struct query q = about(arguments, 0);
        CHECK_ERRNO(ioctl(atoi(arguments[1]), QUERY, &q), ESRCH);
        return guest_passed();
    }
    int maps = open("/proc/self/maps", O_RDONLY);
    char* area = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK_EQ(munmap(area, PAGE) | munmap(area + 3 * PAGE, PAGE), 0);
    char* memory = area + PAGE;
    memory[0] = 1;
    struct query q = about(memory, 0);
    if (ioctl(maps, QUERY, &q) != 0 && errno == ENOTTY) SKIP("the kernel has no PROCMAP_QUERY");
    errors(maps, memory);
    own_memory(maps, memory);
    files(maps);
    build_id(maps);
    of_child(maps, memory, 0);
    of_child(maps, memory, 60000);
    char number[16];
    snprintf(number, sizeof number, "%d", maps);
    fflush(stdout);
    execl(arguments[0], arguments[0], number, (char*)NULL);
    return 1;
}
