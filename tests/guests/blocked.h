// Calls that wait for seconds, each in a thread or a process of its own, until the parent supplies
// what they wait for. Whatever happens to who waits meanwhile, the results are exact: nothing is
// lost, done twice, interrupted or over too early.
#ifndef GPR_TESTS_GUESTS_BLOCKED_H
#define GPR_TESTS_GUESTS_BLOCKED_H

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

// A process that is stopped and continued sees EINTR of some calls (signal(7)). Who stops the
// parent must not change what the others do, so such calls do not wait in it.
enum place {
    PARENT = 1,  // a thread of the parent
    CHILD = 2,   // a thread of the one child that all such threads share
    OWN = 4,     // the only thread of a child of its own
    EVERYWHERE = PARENT | CHILD | OWN,
    THREADS = PARENT | CHILD,
};
enum { MANY_MS = 30000, MOST_WAITS = 96, WORDS = 4 };
// All waits last as many times as long as the variable GUEST_TIMES says, so that there is time to
// do something to who waits.
static int blocked_times = 1;
// Without those that have one of these words in their name, which commas part.
static const char* blocked_without;
// In this process only, and without memory that is shared.
static int blocked_alone;
#define MIDWAY_MS (1500 * blocked_times)
#define BLOCKED_MS (2600 * blocked_times)

struct wait;
typedef void (*blocked_step)(struct wait*);
struct kind {
    const char* name;
    int places;
    blocked_step make;    // by the parent, before anybody waits
    blocked_step block;   // by who waits
    blocked_step midway;  // by the parent, when they have waited for a while
    blocked_step supply;  // by the parent, when they have waited for longer
    blocked_step finish;  // by the parent, at the end
};
struct wait {
    const struct kind* kind;
    enum place place;
    int index, fds[4], error;  // why this machine cannot do it
    pid_t pid, tid;            // who waits
    uint32_t* words;           // shared with who waits
    int ready, done;
    char said[200];  // what was wrong
};
// What who waits tells the parent; smaller than what a pipe takes at once.
struct blocked_news {
    int index, what;
    pid_t pid, tid;
    char text[200];
};
enum { BLOCKED_READY, BLOCKED_DONE, BLOCKED_WRONG, BLOCKED_IMPOSSIBLE };

static struct wait blocked_waits[MOST_WAITS];
static int blocked_count, blocked_pipe[2];
static uint32_t* blocked_words;
static pid_t blocked_parent;

static inline void blocked_send(struct wait* w, int what, const char* text) {
    struct blocked_news news = {
        .index = w->index, .what = what, .pid = getpid(), .tid = (pid_t)syscall(SYS_gettid)};
    snprintf(news.text, sizeof news.text, "%s", text);
    if (write(blocked_pipe[1], &news, sizeof news) != (ssize_t)sizeof news) abort();
}

static inline void blocked_say(struct wait* w, const char* form, ...) {
    char text[200];
    va_list values;
    va_start(values, form);
    vsnprintf(text, sizeof text, form, values);
    va_end(values);
    blocked_send(w, BLOCKED_WRONG, text);
}

// This machine cannot do it; natively, the same is said.
static inline void blocked_impossible(struct wait* w) {
    char text[32];
    snprintf(text, sizeof text, "%d", errno);
    blocked_send(w, BLOCKED_IMPOSSIBLE, text);
}

// In the steps of a wait: what is wrong is told, and ends the step.
#define EXPECT_EQ(got, expected)                                                                 \
    do {                                                                                         \
        long long got_value = (long long)(got), expected_value = (long long)(expected);          \
        int saved_errno = got_value == -1 ? errno : 0;                                           \
        if (got_value != expected_value) {                                                       \
            blocked_say(w, "line %d: %s is %lld, not %lld, errno %d", __LINE__, #got, got_value, \
                        expected_value, saved_errno);                                            \
            return;                                                                              \
        }                                                                                        \
    } while (0)
#define EXPECT(condition)                                                \
    do {                                                                 \
        if (!(condition)) {                                              \
            blocked_say(w, "line %d: not so: %s", __LINE__, #condition); \
            return;                                                      \
        }                                                                \
    } while (0)
#define EXPECT_ERRNO(call, expected)  \
    do {                              \
        EXPECT_EQ((call), -1);        \
        EXPECT_EQ(errno, (expected)); \
    } while (0)

static inline struct timespec blocked_in_ms(int ms) {
    return (struct timespec){ms / 1000, ms % 1000 * 1000000L};
}

static inline struct timespec blocked_at(clockid_t clock, int ms) {
    struct timespec t;
    CHECK_EQ(clock_gettime(clock, &t), 0);
    t.tv_sec += ms / 1000;
    t.tv_nsec += ms % 1000 * 1000000L;
    if (t.tv_nsec >= 1000000000L) {
        t.tv_nsec -= 1000000000L;
        t.tv_sec++;
    }
    return t;
}

static inline long blocked_now_ms(void) {
    struct timespec t = blocked_at(CLOCK_MONOTONIC, 0);
    return t.tv_sec * 1000L + t.tv_nsec / 1000000;
}

static inline void blocked_sleep(int ms) {
    struct timespec at = blocked_at(CLOCK_MONOTONIC, ms);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0) continue;
}

static inline void blocked_signal(struct wait* w, int number) {
    EXPECT_EQ(syscall(SYS_tgkill, w->pid, w->tid, number), 0);
}

// The same words that all supply, and nothing after them.
#define BLOCKED_DATA "supplied"
enum { DATA_SIZE = sizeof BLOCKED_DATA - 1 };
static inline void blocked_supply_write(struct wait* w) {
    EXPECT_EQ(write(w->fds[1], BLOCKED_DATA, DATA_SIZE), DATA_SIZE);
}
static inline void blocked_nothing_left(struct wait* w) {
    int left = -1;
    EXPECT_EQ(ioctl(w->fds[0], FIONREAD, &left), 0);
    EXPECT_EQ(left, 0);
}
static inline void blocked_make_pipe(struct wait* w) { EXPECT_EQ(pipe(w->fds), 0); }

static inline void* blocked_body(void* argument) {
    struct wait* w = argument;
    blocked_send(w, BLOCKED_READY, "");
    w->kind->block(w);
    blocked_send(w, BLOCKED_DONE, "");
    return NULL;
}

static inline void blocked_threads(enum place place) {
    pthread_t threads[MOST_WAITS];
    int count = 0;
    pthread_attr_t attributes;
    CHECK_EQ(pthread_attr_init(&attributes), 0);
    CHECK_EQ(pthread_attr_setstacksize(&attributes, 1 << 17), 0);
    for (struct wait* w = blocked_waits; w < blocked_waits + blocked_count; w++)
        if (w->place == place && w->pid == 0)
            CHECK_EQ(pthread_create(&threads[count++], &attributes, blocked_body, w), 0);
    if (place == PARENT) return;
    for (int i = 0; i < count; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

static inline int blocked_fork(enum place place, struct wait* w) {
    fflush(stdout);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid != 0) return 1;
    if (place == OWN) blocked_body(w);
    if (place == CHILD) blocked_threads(place);
    _exit(0);
}

static inline void blocked_hear(const struct blocked_news* news) {
    CHECK(news->index >= 0 && news->index < blocked_count);
    struct wait* w = &blocked_waits[news->index];
    switch (news->what) {
        case BLOCKED_READY:
            w->pid = news->pid;
            w->tid = news->tid;
            w->ready = 1;
            break;
        case BLOCKED_DONE: w->done = 1; break;
        case BLOCKED_IMPOSSIBLE: w->error = atoi(news->text); break;
        default:
            if (!w->said[0]) memcpy(w->said, news->text, sizeof w->said);
    }
}

static inline const char* blocked_place(const struct wait* w) {
    return w->place == PARENT ? "thread" : w->place == CHILD ? "child's thread" : "child";
}

static inline int blocked_missing(int done, int names) {
    int count = 0;
    for (struct wait* w = blocked_waits; w < blocked_waits + blocked_count; w++) {
        if (w->pid < 0 || (done ? w->done : w->ready)) continue;
        count++;
        if (!names) continue;
        fprintf(stderr, "%s, %s: %s\n", w->kind->name, blocked_place(w),
                done ? "waits" : "is not ready");
    }
    return count;
}

// Hears everything that was told so far.
static inline void blocked_hear_all(int patience_ms) {
    struct pollfd news = {blocked_pipe[0], POLLIN, 0};
    while (poll(&news, 1, patience_ms) > 0) {
        struct blocked_news one;
        CHECK_EQ(read(blocked_pipe[0], &one, sizeof one), sizeof one);
        blocked_hear(&one);
        patience_ms = 0;
    }
}

// Who waits for ever is named; whoever runs this ends it.
static inline void blocked_until(int done) {
    long began_ms = blocked_now_ms();
    for (int named = 0; blocked_missing(done, 0) > 0;) {
        blocked_hear_all(100);
        if (named || blocked_now_ms() < began_ms + MANY_MS) continue;
        blocked_missing(done, 1);
        named = 1;
    }
}

static inline int blocked_is_left_out(const char* name) {
    char words[64], *rest = words;
    snprintf(words, sizeof words, "%s", blocked_without ? blocked_without : "");
    for (const char* word; (word = strsep(&rest, ","));) {
        if (*word && strcasestr(name, word)) return 1;
    }
    return 0;
}

static inline void blocked_instances(const struct kind* kinds, int count) {
    for (int i = 0; i < count; i++) {
        for (int place = PARENT; place <= OWN; place *= 2) {
            const int places = !blocked_alone                         ? kinds[i].places
                               : (kinds[i].places & (PARENT | CHILD)) ? PARENT
                                                                      : 0;
            if (!(places & place)) continue;
            if (blocked_is_left_out(kinds[i].name)) continue;
            CHECK(blocked_count < MOST_WAITS);
            struct wait* w = &blocked_waits[blocked_count];
            *w = (struct wait){.kind = &kinds[i], .place = (enum place)place};
            w->index = blocked_count++;
            w->words = blocked_words + w->index * WORDS;
            for (int j = 0; j < 4; j++) w->fds[j] = -1;
            if (kinds[i].make) kinds[i].make(w);
            blocked_hear_all(0);
            if (w->error || w->said[0]) w->pid = -1;  // nobody waits
        }
    }
}

static inline void blocked_step_of_all(size_t offset) {
    for (struct wait* w = blocked_waits; w < blocked_waits + blocked_count; w++) {
        blocked_step step = *(const blocked_step*)((const char*)w->kind + offset);
        if (step && w->pid > 0 && !w->error) step(w);
    }
}

static inline int blocked_report(void) {
    int wrong = 0;
    for (struct wait* w = blocked_waits; w < blocked_waits + blocked_count; w++) {
        printf("%s, %s: ", w->kind->name, blocked_place(w));
        if (w->error)
            printf("not here, errno %d\n", w->error);
        else
            printf("%s\n", w->said[0] ? w->said : "ok");
        wrong += w->said[0] != 0;
    }
    return wrong;
}

static inline int blocked_run(const struct kind* kinds, int count) {
    const char* times = getenv("GUEST_TIMES");
    if (times) blocked_times = atoi(times);
    CHECK(blocked_times > 0);
    blocked_without = getenv("GUEST_WITHOUT");
    blocked_alone = getenv("GUEST_ALONE") != NULL;
    CHECK_EQ(pipe(blocked_pipe), 0);
    blocked_parent = getpid();
    blocked_words = mmap(NULL, MOST_WAITS * WORDS * sizeof *blocked_words, PROT_READ | PROT_WRITE,
                         (blocked_alone ? MAP_PRIVATE : MAP_SHARED) | MAP_ANONYMOUS, -1, 0);
    CHECK(blocked_words != MAP_FAILED);
    CHECK(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
    blocked_instances(kinds, count);
    int children = 0, shared = 0;
    for (struct wait* w = blocked_waits; w < blocked_waits + blocked_count; w++) {
        if (w->place == OWN && w->pid == 0) children += blocked_fork(OWN, w);
        shared += w->place == CHILD && w->pid == 0;
    }
    if (shared) children += blocked_fork(CHILD, NULL);
    blocked_threads(PARENT);
    blocked_until(0);
    blocked_sleep(MIDWAY_MS);
    blocked_step_of_all(offsetof(struct kind, midway));
    blocked_sleep(BLOCKED_MS - MIDWAY_MS);
    blocked_step_of_all(offsetof(struct kind, supply));
    blocked_until(1);
    blocked_step_of_all(offsetof(struct kind, finish));
    blocked_hear_all(0);
    for (int i = 0; i < children; i++) {
        int status = -1;
        CHECK(wait(&status) > 0);
        CHECK_EQ(status, 0);
    }
    if (blocked_report() > 0) return 1;
    return guest_passed();
}

#endif
