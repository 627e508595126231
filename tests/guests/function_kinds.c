// Functions of a library, one by one: neighbours on a page, callbacks, jumps, all ways to pass
// values, tail calls, an IFUNC and two versions of a name; in threads, children and after dlclose.
// tests/scenarios/functions knows how often each is called.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>

#include "guest.h"
#include "libgprfunctions.h"

static long count(long i, void* argument) {
    *(long*)argument += i;
    return i * 2;
}

static long nested(long i, void* argument) {
    (void)argument;
    return chosen_add((int)i, plain_add(1, 2));
}

static void jump(jmp_buf target) { longjmp(target, 9); }

static void simple(void) {
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(plain_add(i, 1), i + 1);
        CHECK_EQ(chosen_add(i, 1), i + 1);
        plain_before();
        chosen_nothing();
        CHECK_EQ(plain_after(), 7);
    }
    CHECK_EQ(chosen_long(4), 5);
    CHECK_EQ(chosen_sizeless(4), 9);
    CHECK_EQ(chosen_sum(8, 1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L), 4916);
    CHECK(chosen_sum_doubles(3, 0.5, 1, 1.5, 2, 2.5, 3) == 10.5);
    struct chosen_large large = chosen_filled(100);
    for (int i = 0; i < 20; i++) CHECK_EQ(large.values[i], 100 + i);
    CHECK_EQ(chosen_tail_out(4), 10);
    CHECK_EQ(plain_tail_in(4), 9);
    CHECK_EQ(chosen_resolved(1), 1001);
    CHECK_EQ(chosen_versioned(), 2);
    int (*old)(void) = (int (*)(void))dlvsym(RTLD_DEFAULT, "chosen_versioned", "GPR_1");
    CHECK(old);
    CHECK_EQ(old(), 1);
}

static void callbacks(void) {
    long seen = 0;
    CHECK_EQ(chosen_callback(count, &seen, 10), 90);
    CHECK_EQ(seen, 45);
    CHECK_EQ(chosen_callback(nested, NULL, 4), 18);
    jmp_buf back;
    int jumped = setjmp(back);
    if (jumped == 0) chosen_jump(jump, back);
    CHECK_EQ(jumped, 9);
}

static void* in_thread(void* argument) {
    long seen = 0;
    int self = (int)(intptr_t)argument;
    for (int i = 0; i < 25; i++) CHECK_EQ(chosen_add(i, self), i + self);
    CHECK_EQ(chosen_callback(count, &seen, 5), 20);
    return argument;
}

static void threads(void) {
    pthread_t list[4];
    for (intptr_t i = 0; i < 4; i++) pthread_create(&list[i], NULL, in_thread, (void*)i);
    for (intptr_t i = 0; i < 4; i++) {
        void* result = NULL;
        CHECK_EQ(pthread_join(list[i], &result), 0);
        CHECK_EQ((intptr_t)result, i);
    }
}

static void children(void) {
    pid_t child = fork();
    if (child == 0) {
        long seen = 0;
        _exit(chosen_add(1, 2) == 3 && chosen_callback(count, &seen, 3) == 6 ? 33 : 1);
    }
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 33);
    child = vfork();
    if (child == 0) _exit(chosen_add(40, 4));
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 44);
    usleep(200000);  // what the child needed here is gone again
    CHECK_EQ(chosen_add(3, 3), 6);
}

// The library once more, under another name: it comes and goes.
static void again(const char* path) {
    for (int i = 0; i < 3; i++) {
        void* library = dlopen(path, RTLD_NOW);
        CHECK(library);
        int (*add)(int, int) = (int (*)(int, int))dlsym(library, "chosen_add");
        CHECK(add && add != chosen_add);
        CHECK_EQ(add(i, 2), i + 2);
        int (*resolved)(int) = (int (*)(int))dlsym(library, "chosen_resolved");
        CHECK_EQ(resolved(i), 1000 + i);
        CHECK_EQ(dlclose(library), 0);
    }
}

int main(int argc, char** argv) {
    simple();
    callbacks();
    threads();
    children();
    CHECK_EQ(plain_calls_chosen(4), 6);
    if (argc > 1) again(argv[1]);
    return guest_passed();
}
