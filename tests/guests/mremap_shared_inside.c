// A shared mapping that shows a part of its object grows over more of it: the pages that come into
// sight have what is in the object, and what is written there is all that changes in it.
#include <fcntl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>

#include "guest.h"

enum { PAGE = 4096, PAGES = 4, SIZE = PAGES * PAGE };
enum object { A_FILE, MEMFD, ANONYMOUS, SEGMENT, OBJECTS };
enum way { MOVES, IN_PLACE, FIXED, SECOND_VIEW, AFTER_DONTUNMAP, REMAPPED, WAYS };

static const int readable = PROT_READ | PROT_WRITE;

static char* reserve(void) {
    char* area = mmap(NULL, 16 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(area != MAP_FAILED);
    return area;
}

// A view of the page `first` alone, of an object with content in all of its pages. Of what can be
// read by a descriptor that is given.
static char* show(enum object what, int first, uint64_t seed, int* fd) {
    static char content[SIZE];
    guest_fill(content, SIZE, seed);
    *fd = what == A_FILE  ? open("data", O_RDWR | O_CREAT | O_TRUNC, 0600)
          : what == MEMFD ? memfd_create("data", 0)
                          : -1;
    if (*fd >= 0) {
        CHECK_EQ(write(*fd, content, SIZE), SIZE);
        return mmap(NULL, PAGE, readable, MAP_SHARED, *fd, first * PAGE);
    }
    char* all;
    if (what == SEGMENT) {
        int id = shmget(IPC_PRIVATE, SIZE, IPC_CREAT | 0600);
        CHECK(id >= 0);
        all = shmat(id, NULL, 0);
        CHECK_EQ(shmctl(id, IPC_RMID, NULL), 0);
    } else {
        all = mmap(NULL, SIZE, readable, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    }
    CHECK(all != MAP_FAILED);
    memcpy(all, content, SIZE);
    if (first > 0) CHECK_EQ(munmap(all, (size_t)first * PAGE), 0);
    if (first < PAGES - 1) {
        CHECK_EQ(munmap(all + (first + 1) * PAGE, (size_t)(PAGES - 1 - first) * PAGE), 0);
    }
    return all + first * PAGE;
}

// It shows what is left of the object from `first` on.
static char* grow(char* view, enum way how, int first) {
    size_t size = (size_t)(PAGES - first) * PAGE;
    char* place = how == IN_PLACE || how == FIXED ? reserve() : NULL;
    switch (how) {
        case MOVES: return mremap(view, PAGE, size, MREMAP_MAYMOVE);
        case IN_PLACE:
            view = mremap(view, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place);
            CHECK_EQ(munmap(place + PAGE, 15 * PAGE), 0);
            return mremap(view, PAGE, size, 0);
        case FIXED:
            return mremap(view, PAGE, size, MREMAP_MAYMOVE | MREMAP_FIXED, place + 3 * PAGE);
        case SECOND_VIEW: return mremap(view, 0, size, MREMAP_MAYMOVE);
        case AFTER_DONTUNMAP: {
            char* other = mremap(view, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
            CHECK(other != MAP_FAILED && other != view);
            CHECK(mremap(other, PAGE, PAGE, MREMAP_MAYMOVE) == other);
            return mremap(view, PAGE, size, MREMAP_MAYMOVE);
        }
        case REMAPPED: {
            // Page by page, each of which shows first what the first one does.
            char* all = reserve();
            for (int i = 0; i < PAGES - first; i++) {
                char* one = mremap(view, 0, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, all + i * PAGE);
                CHECK(one == all + i * PAGE);
                CHECK_EQ(remap_file_pages(one, PAGE, 0, (size_t)(first + i), 0), 0);
            }
            return all;
        }
        default: return MAP_FAILED;
    }
}

static void look(char* grown, int first, uint64_t seed, int fd) {
    static char expected[SIZE], found[SIZE];
    guest_fill(expected, SIZE, seed);
    size_t size = (size_t)(PAGES - first) * PAGE, skipped = (size_t)first * PAGE;
    CHECK(memcmp(grown, expected + skipped, size) == 0);
    for (int i = 0; i < PAGES - first; i++) {
        grown[i * PAGE + 7] = (char)i;
        expected[skipped + (size_t)i * PAGE + 7] = (char)i;
    }
    CHECK(memcmp(grown, expected + skipped, size) == 0);
    if (fd >= 0) {
        CHECK_EQ(pread(fd, found, SIZE, 0), SIZE);
        CHECK(memcmp(found, expected, SIZE) == 0);
        char* all = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
        CHECK(all != MAP_FAILED && memcmp(all, expected, SIZE) == 0);
        CHECK_EQ(munmap(all, SIZE), 0);
    }
}

// So does a child see it.
static void look_from_child(char* grown, int first) {
    size_t size = (size_t)(PAGES - first) * PAGE;
    uint64_t sum = 0, its_sum = 0;
    for (size_t i = 0; i < size; i++) sum = sum * 31 + (unsigned char)grown[i];
    pid_t child = fork();
    if (child == 0) {
        for (size_t i = 0; i < size; i++) its_sum = its_sum * 31 + (unsigned char)grown[i];
        CHECK_EQ(its_sum, sum);
        grown[size - 1] = 'c';
        _exit(0);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_EQ(((volatile char*)grown)[size - 1], 'c');
}

static void try_one(enum object what, enum way how, int first, int touched) {
    uint64_t seed = (uint64_t)what * 1000 + (uint64_t)how * 100 + (uint64_t)first * 10 + 1;
    int fd;
    char* view = show(what, first, seed, &fd);
    CHECK(view != MAP_FAILED);
    if (touched) CHECK(*(volatile char*)view == *view);
    char* grown = grow(view, how, first);
    if (grown == MAP_FAILED) printf("object %d, way %d, page %d\n", what, how, first);
    CHECK(grown != MAP_FAILED);
    look(grown, first, seed, fd);
    if (how == MOVES) look_from_child(grown, first);
    CHECK_EQ(munmap(grown, (size_t)(PAGES - first) * PAGE), 0);
    if (fd >= 0) CHECK_EQ(close(fd), 0);
}

// Where it grows to another view was written, of another file, which has that.
static void try_over_another(void) {
    int fd, other = open("other", O_RDWR | O_CREAT | O_TRUNC, 0600);
    char* view = show(A_FILE, 0, 77, &fd);
    CHECK_EQ(ftruncate(other, SIZE), 0);
    char* place = mmap(reserve(), SIZE, readable, MAP_SHARED | MAP_FIXED, other, 0);
    CHECK(place != MAP_FAILED);
    memset(place, 'o', SIZE);
    CHECK(mremap(view, PAGE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, place) == place);
    look(place, 0, 77, fd);
    char found[3];
    CHECK_EQ(pread(other, found, sizeof found, SIZE - sizeof found), sizeof found);
    CHECK(memcmp(found, "ooo", 3) == 0);
    CHECK_EQ(close(fd) | close(other), 0);
}

int main(void) {
    for (int what = 0; what < OBJECTS; what++) {
        for (int how = 0; how < WAYS; how++) {
            if (what != A_FILE && how > IN_PLACE) continue;
            try_one((enum object)what, (enum way)how, 0, 0);
            if (what == A_FILE) try_one((enum object)what, (enum way)how, 1, 1);
        }
    }
    try_over_another();
    pid_t child = fork();
    if (child == 0) {
        for (int what = 0; what < OBJECTS; what++) try_one((enum object)what, MOVES, 0, 0);
        _exit(0);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    return guest_passed();
}
