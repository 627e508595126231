// Two programs share memory and agree at all times: what one writes and then says so the other
// reads; atomic operations, locks and semaphores hold between them; the kernel sees it, too.
// Without arguments both are processes of this guest. Else: ROLE KIND PATH, where ROLE is first or
// second, KIND file, sysv or memfd, and PATH a name that nobody has taken.
// tests/scenarios/external_sharers runs one of them split and the other natively.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "guest.h"

enum {
    PAGE = 4096,
    PAGES = 4,
    ROUNDS = 100,
    ADDS = 20000,
    LOCKS = 300,
    TURNS = 100,
    SLOW = 5,
    BESIDE = 500
};
enum { BYTES = 8 * PAGE, LIMIT_S = 60 };

struct area {
    _Atomic uint32_t present[2];
    _Atomic uint32_t turn;
    _Atomic uint64_t sum;
    sem_t company;
    char apart[PAGE];
    uint64_t beside[2];
    char further[PAGE];
    uint64_t last[2];
    unsigned char data[PAGES - 1][PAGE];
    pthread_mutex_t mutex;
    uint64_t locked;
    sem_t semaphores[2];
    char text[64];
};
_Static_assert(sizeof(struct area) <= BYTES, "the object is large enough");

static int me;

static void wait_a_little(void) { nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL); }

// Threads that run at home go to the acceptor for this call, and may stay a while.
static void call_there(void) {
    struct rlimit limit;
    CHECK_EQ(prlimit(getpid(), RLIMIT_AS, NULL, &limit), 0);
}

static void await_word(_Atomic uint32_t* word, uint32_t wanted) {
    time_t begin = time(NULL);
    while (atomic_load(word) < wanted) {
        CHECK(time(NULL) < begin + LIMIT_S);
        if (wanted % SLOW == 0) wait_a_little();
        if (wanted % SLOW > 1) sched_yield();  // else it spins
    }
}

static void* map(int fd) {
    void* memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

static void prepare(struct area* a) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    CHECK_EQ(pthread_mutex_init(&a->mutex, &attributes), 0);
    for (int i = 0; i < 2; i++) CHECK_EQ(sem_init(&a->semaphores[i], 1, 0), 0);
    CHECK_EQ(sem_init(&a->company, 1, 0), 0);
}

// The second finds the file whole, or not at all.
static void publish(const char* path, const char* text) {
    char made[256];
    snprintf(made, sizeof made, "%s.made", path);
    FILE* out = fopen(made, "w");
    fputs(text, out);
    CHECK_EQ(fclose(out), 0);
    CHECK_EQ(rename(made, path), 0);
}

static void* attach_segment(const char* path) {
    char text[32];
    if (me == 0) {
        int id = shmget(IPC_PRIVATE, BYTES, IPC_CREAT | 0600);
        void* memory = shmat(id, NULL, 0);
        prepare(memory);
        snprintf(text, sizeof text, "%d\n", id);
        publish(path, text);
        return memory;
    }
    FILE* in;
    while (!(in = fopen(path, "r"))) wait_a_little();
    CHECK(fgets(text, sizeof text, in));
    fclose(in);
    int id = atoi(text);
    void* memory = shmat(id, NULL, 0);
    CHECK_EQ(shmctl(id, IPC_RMID, NULL), 0);
    return memory;
}

static void* attach_file(const char* path) {
    char made[256];
    int fd;
    if (me == 0) {
        snprintf(made, sizeof made, "%s.made", path);
        fd = open(made, O_RDWR | O_CREAT | O_EXCL, 0600);
        CHECK_EQ(ftruncate(fd, BYTES), 0);
    } else {
        while ((fd = open(path, O_RDWR)) < 0) wait_a_little();
    }
    void* memory = map(fd);
    close(fd);
    if (me == 0) {
        prepare(memory);
        CHECK_EQ(rename(made, path), 0);
    }
    return memory;
}

union rights {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
};

static void* attach_memfd(const char* path) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(name.sun_path, sizeof name.sun_path, "%s", path);
    int end = socket(AF_UNIX, SOCK_STREAM, 0), fd = -1;
    union rights rights = {
        {.cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    char byte = 0;
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &rights, .msg_controllen = sizeof rights};
    if (me == 1) {
        while (connect(end, (struct sockaddr*)&name, sizeof name) != 0) wait_a_little();
        CHECK_EQ(recvmsg(end, &message, 0), 1);
        memcpy(&fd, CMSG_DATA(&rights.header), sizeof fd);
        close(end);
        return map(fd);
    }
    CHECK_EQ(bind(end, (struct sockaddr*)&name, sizeof name), 0);
    CHECK_EQ(listen(end, 1), 0);
    int peer = accept(end, NULL, NULL);
    fd = memfd_create("shared", 0);
    CHECK_EQ(ftruncate(fd, BYTES), 0);
    void* memory = map(fd);
    prepare(memory);
    memcpy(CMSG_DATA(&rights.header), &fd, sizeof fd);
    CHECK_EQ(sendmsg(peer, &message, 0), 1);
    close(peer);
    close(end);
    return memory;
}

static void meet(struct area* a, uint32_t step) {
    atomic_store(&a->present[me], step);
    await_word(&a->present[!me], step);
}

// The first waits before the second is there.
static void wait_for_company(struct area* a) {
    if (me == 0) {
        CHECK_EQ(sem_wait(&a->company), 0);
    } else {
        for (int i = 0; i < 50; i++) wait_a_little();
        CHECK_EQ(sem_post(&a->company), 0);
    }
    meet(a, 1);
}

// The first writes on a page, with calls now and then, when the second comes and writes beside.
static void write_beside(struct area* a) {
    volatile uint64_t* own = &a->beside[me];
    for (uint64_t i = 1; me == 0 ? atomic_load(&a->present[1]) == 0 : i <= BESIDE; i++) {
        *own = i;
        if (i % 64 == 0) CHECK(getppid() >= 0);
        if (i % 64 == 32) call_there();
        CHECK_EQ(*own, i);
        a->last[me] = i;
    }
    meet(a, 1);
    CHECK_EQ(a->beside[0], a->last[0]);
    CHECK_EQ(a->beside[1], BESIDE);
}

static void pass_pages(struct area* a) {
    for (uint32_t i = 0; i < ROUNDS; i++) {
        await_word(&a->turn, 2 * i + (uint32_t)me);
        for (int page = 0; page < PAGES - 1 && (i > 0 || me == 1); page++) {
            CHECK(guest_is_filled(a->data[page], PAGE, 2 * i + (uint32_t)me + 1000 * page));
        }
        call_there();
        for (int page = 0; page < PAGES - 1; page++) {
            guest_fill(a->data[page], PAGE, 2 * i + (uint32_t)me + 1 + 1000 * page);
        }
        atomic_store(&a->turn, 2 * i + (uint32_t)me + 1);
    }
    printf("%d rounds of %d pages\n", ROUNDS, PAGES - 1);
}

static void add(struct area* a) {
    for (int i = 0; i < ADDS; i++) {
        if (i % (ADDS / TURNS) == 0) {
            wait_a_little();  // so that the other one adds meanwhile
            call_there();
        }
        atomic_fetch_add(&a->sum, 1 + (uint64_t)me);
    }
    meet(a, 2);
    printf("sum %lu\n", (unsigned long)atomic_load(&a->sum));
}

static void lock(struct area* a) {
    for (int i = 0; i < LOCKS; i++) {
        CHECK_EQ(pthread_mutex_lock(&a->mutex), 0);
        uint64_t before = *(volatile uint64_t*)&a->locked;
        if (i % 10 == 0) wait_a_little();
        *(volatile uint64_t*)&a->locked = before + 1;
        CHECK_EQ(pthread_mutex_unlock(&a->mutex), 0);
    }
    meet(a, 3);
    printf("locked %lu times\n", (unsigned long)a->locked);
}

static void alternate(struct area* a) {
    if (me == 0) CHECK_EQ(sem_post(&a->semaphores[0]), 0);
    for (int i = 0; i < TURNS; i++) {
        CHECK_EQ(sem_wait(&a->semaphores[me]), 0);
        if (i % 10 == 0) wait_a_little();  // the other one waits, and is woken
        CHECK_EQ(sem_post(&a->semaphores[!me]), 0);
    }
    printf("%d turns\n", TURNS);
    meet(a, 4);
}

// What the kernel reads and writes in it.
static void call(struct area* a) {
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    for (uint32_t i = 0; i < TURNS; i++) {
        char text[64];
        int size = snprintf(text, sizeof text, "round %u by %d", i, (int)(i % 2));
        if ((int)(i % 2) == me) {
            CHECK_EQ(write(ends[1], text, size + 1), size + 1);
            CHECK_EQ(read(ends[0], a->text, sizeof a->text), size + 1);
        }
        meet(a, 5 + 2 * i);
        char back[64] = "";
        CHECK_EQ(write(ends[1], a->text, size + 1), size + 1);
        CHECK_EQ(read(ends[0], back, sizeof back), size + 1);
        CHECK(strcmp(back, text) == 0);
        meet(a, 6 + 2 * i);
    }
    printf("%d times by calls\n", TURNS);
}

static int play(const char* kind, const char* path) {
    void* memory = strcmp(kind, "sysv") == 0    ? attach_segment(path)
                   : strcmp(kind, "memfd") == 0 ? attach_memfd(path)
                                                : attach_file(path);
    CHECK(memory != MAP_FAILED);
    struct area* a = memory;
    if (strcmp(kind, "file") == 0) {
        write_beside(a);
    } else {
        wait_for_company(a);
    }
    pass_pages(a);
    add(a);
    lock(a);
    alternate(a);
    call(a);
    if (me == 1) CHECK_EQ(unlink(path), 0);
    return guest_passed();
}

int main(int argc, char** argv) {
    if (argc == 4) {
        me = strcmp(argv[1], "second") == 0;
        return play(argv[2], argv[3]);
    }
    for (const char* const* kind = (const char* const[]){"file", "sysv", "memfd", NULL}; *kind;
         kind++) {
        pid_t child = fork();
        me = child == 0;
        if (child == 0) {
            CHECK(freopen("/dev/null", "w", stdout));
            exit(play(*kind, *kind));
        }
        CHECK_EQ(play(*kind, *kind), 0);
        int status;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK_EQ(status, 0);
    }
    return 0;
}
