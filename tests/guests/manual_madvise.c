// madvise(2): each advice on each kind of memory, and its errors.
#include <fcntl.h>

#include "manual.h"

static char* anonymous(size_t pages) {
    char* at =
        (char*)mmap(NULL, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < pages; i++) at[i * 4096] = (char)(i + 1);
    return at;
}

static const struct {
    int advice;
    const char* name;
} every[] = {
    {MADV_NORMAL, "NORMAL"},
    {MADV_RANDOM, "RANDOM"},
    {MADV_SEQUENTIAL, "SEQUENTIAL"},
    {MADV_WILLNEED, "WILLNEED"},
    {MADV_DONTNEED, "DONTNEED"},
    {MADV_FREE, "FREE"},
    {MADV_REMOVE, "REMOVE"},
    {MADV_DONTFORK, "DONTFORK"},
    {MADV_DOFORK, "DOFORK"},
    {MADV_HUGEPAGE, "HUGEPAGE"},
    {MADV_NOHUGEPAGE, "NOHUGEPAGE"},
    {MADV_DONTDUMP, "DONTDUMP"},
    {MADV_DODUMP, "DODUMP"},
    {MADV_WIPEONFORK, "WIPEONFORK"},
    {MADV_KEEPONFORK, "KEEPONFORK"},
    {MADV_COLD, "COLD"},
    {MADV_PAGEOUT, "PAGEOUT"},
    {22, "POPULATE_READ"},
    {23, "POPULATE_WRITE"},
    {24, "DONTNEED_LOCKED"},
    {5, "unused"},
    {-1, "negative"},
    {50, "unknown"},
};

static void on_each(const char* kind, char* at, size_t size) {
    printf("%s:", kind);
    for (size_t i = 0; i < sizeof every / sizeof *every; i++) {
        errno = 0;
        int result = madvise(at, size, every[i].advice);
        printf(" %s %s;", every[i].name, result ? strerrorname_np(errno) : "works");
    }
    printf("\n");
}

static void kinds(void) {
    int file = open("file", O_RDWR | O_CREAT, 0600);
    ftruncate(file, 16384);
    on_each("private", anonymous(4), 16384);
    on_each("private, not writable",
            (char*)mmap(NULL, 16384, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 16384);
    on_each("no access", (char*)mmap(NULL, 16384, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
            16384);
    on_each("shared",
            (char*)mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0),
            16384);
    on_each("shared file", (char*)mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0),
            16384);
    on_each("shared file, read only", (char*)mmap(NULL, 16384, PROT_READ, MAP_SHARED, file, 0),
            16384);
    on_each("private file", (char*)mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0),
            16384);
    char* locked = anonymous(4);
    mlock(locked, 16384);
    on_each("locked", locked, 16384);
}

static void ranges(void) {
    char* at = anonymous(8);
    TRY(madvise(at + 1, 4096, MADV_DONTNEED));
    TRY(madvise(at, 0, MADV_DONTNEED));
    TRY(madvise(at + 1, 0, MADV_DONTNEED));
    TRY(madvise(at, (size_t)-1, MADV_DONTNEED));
    TRY(madvise(at, (size_t)-8192, MADV_DONTNEED));
    SAY("%d %d", at[0], at[4096]);
    TRY(madvise(at, 1, MADV_DONTNEED));
    SAY("%d %d", at[0], at[4096]);
    munmap(at + 3 * 4096, 4096);
    TRY(madvise(at, 8 * 4096, MADV_DONTNEED));  // on either side of the hole, and then ENOMEM
    SAY("%d %d %d", at[2 * 4096], at[4 * 4096], at[7 * 4096]);
    at[4 * 4096] = 9;
    TRY(madvise(at + 3 * 4096, 4096, MADV_DONTNEED));
    TRY(madvise(at, 8 * 4096, MADV_RANDOM));
    TRY(madvise(at, 8 * 4096, 22));
    TRY(madvise(at, 8 * 4096, MADV_WILLNEED));
    SAY("%d", at[4 * 4096]);
}

static void contents(void) {
    char* at = anonymous(4);
    char* shared =
        (char*)mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    memset(shared, 's', 16384);
    TRY(madvise(shared, 8192, MADV_DONTNEED));
    SAY("%c", shared[0]);
    TRY(madvise(shared + 4096, 4096, MADV_REMOVE));
    SAY("%c %d %c", shared[0], shared[4096], shared[8192]);
    TRY(madvise(at, 4096, MADV_FREE));
    at[0] = 77;
    SAY("%d", at[0]);
    TRY(madvise(at + 4096, 4096, MADV_WIPEONFORK));
    TRY(madvise(at + 8192, 4096, MADV_DONTFORK));
    if (fork() == 0) {
        usleep(40000);
        SAY("child: %d %d %d", at[0], at[4096], at[3 * 4096]);
        unsigned char resident;
        TRY(mincore(at + 8192, 4096, &resident));
        at[4096] = 5;
        if (fork() == 0) {
            SAY("grandchild: %d", at[4096]);
            _exit(0);
        }
        wait(NULL);
        _exit(0);
    }
    wait(NULL);
    SAY("%d %d", at[4096], at[8192]);
    int file = open("file", O_RDWR);
    write(file, "0123456789", 10);
    char* private_file = (char*)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    private_file[0] = 'p';
    TRY(madvise(private_file, 4096, MADV_DONTNEED));
    SAY("%c", private_file[0]);
    char* file_shared = (char*)mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    file_shared[5000] = 'x';
    TRY(madvise(file_shared + 4096, 4096, MADV_REMOVE));
    char byte = 'n';
    pread(file, &byte, 1, 5000);
    SAY("%d %d", byte, file_shared[5000]);
}

int main(void) {
    manual_begin();
    manual_in_child("kinds", kinds);
    manual_in_child("ranges", ranges);
    manual_in_child("contents", contents);
    return guest_passed();
}
