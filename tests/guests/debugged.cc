// What a debugger is asked about: calls of some depth, signals that the program sends itself and
// handles, faults that it survives, threads that compute and wait. With an argument it waits until
// somebody sets `go`; with "exec" it then executes itself.
#include <setjmp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

#include "guest.h"

struct Item {
    int number;
    Item* next;
};

volatile int go, children, total, handled, faults, stepped;
volatile double halves = 0.5;
volatile bool over;
volatile unsigned long counted;
thread_local volatile int mine = 7;
Item* items;
static sigjmp_buf after_fault;

__attribute__((noinline)) int sum(const Item* item) {
    int all = 0;
    for (; item; item = item->next) all += item->number;
    return all;
}

__attribute__((noinline)) int twice(int number) { return 2 * number; }

__attribute__((noinline)) double add_half(double to) {
    double result = to + halves;
    return result;
}

__attribute__((noinline)) void step_here(int n) {
    stepped = n;
    stepped = stepped + 1;
    stepped = stepped + 10;
}

static void on_signal(int signal) {
    if (signal == SIGUSR1) {
        handled = handled + 1;
        return;
    }
    faults = faults + 1;
    siglongjmp(after_fault, 1);
}

__attribute__((noinline)) void fault() {
    if (sigsetjmp(after_fault, 1) == 0) *reinterpret_cast<volatile int*>(16) = 1;
}

// A child that comes to everything that its parent has a breakpoint at.
void in_child(int n) {
    pid_t child = fork();
    if (child == 0) {
        step_here(n);
        getppid();
        _exit(static_cast<int>(add_half(n) + twice(sum(items))) & 0x7f);
    }
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    children = children + status;
}

// However busy the machine is, the other thread gets on before this one does.
void let_count() {
    const auto before = counted;
    while (counted - before < 1000) usleep(1000);
}

__attribute__((noinline)) void play(int n) {
    total = total + sum(items);
    if (n == 10) raise(SIGUSR1);
    if (n == 20) fault();
    if (n == 30) step_here(n);
    if (n == 35 || n == 50) in_child(n);
    if (n == 40) total = total + static_cast<int>(add_half(1.5));
    if (n == 45) let_count();
    getppid();
}

void wait_for_go() {
    puts("ready");
    fflush(stdout);
    while (!go) usleep(100000);
}

int main(int argc, char** argv) {
    struct sigaction action {};
    action.sa_handler = on_signal;
    sigaction(SIGUSR1, &action, nullptr);
    sigaction(SIGSEGV, &action, nullptr);
    for (int i = 1; i <= 3; i++) items = new Item{i, items};
    if (argc > 1 &&
        !strcmp(argv[1],
                "exec")) {  // with one thread: gdb itself may hang where one of several calls it
        wait_for_go();
        execl(argv[0], argv[0], nullptr);
    }
    std::thread computes([] {
        mine = 8;
        while (!over) counted = counted + 1;
    });
    std::thread waits([] {
        while (!over) usleep(100000);
    });
    if (argc > 1) wait_for_go();
    for (int n = 0; n < 60; n++) play(n);
    over = true;
    computes.join();
    waits.join();
    printf("total %d, %d handled, %d faults, stepped %d, children %#x, counted %d\n", total,
           handled, faults, stepped, children, counted > 0);
    return guest_passed();
}
