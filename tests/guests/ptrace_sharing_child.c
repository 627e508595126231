// A tracer seizes children with which it shares memory that both write, so that they have begun
// where code runs on several nodes: child, and who shares with it, come home for that.
#include <math.h>
#include <sys/mman.h>

#include "ptrace.h"

enum { ROUNDS = 4, LONGEST_S = 40 };

static volatile double angle = 1;
static volatile int* words;

static void write_for_ever(void) {
    for (;;) words[1]++;
}

static void one_round(void) {
    const int before = words[1];
    pid_t child = plain_child(write_for_ever);
    while (words[1] == before) angle = cos(angle);
    CHECK_EQ(ptrace(PTRACE_SEIZE, child, 0, 0), 0);
    CHECK_EQ(ptrace(PTRACE_INTERRUPT, child, 0, 0), 0);
    CHECK_WAIT(child, STOPPED(SIGTRAP, PTRACE_EVENT_STOP));
    errno = 0;
    const long seen = ptrace(PTRACE_PEEKDATA, child, words, 0);
    CHECK_EQ(errno, 0);
    CHECK_EQ((int)(seen >> 32), words[1]);
    words[0]++;
    end_child(child);
}

int main(void) {
    alarm(LONGEST_S);
    words = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(words != MAP_FAILED);
    words[0] = 1;
    for (int i = 0; i < ROUNDS; i++) one_round();
    CHECK_EQ(words[0], 1 + ROUNDS);
    return guest_passed();
}
