// Actions, masks, queues and stacks of signals, handlers that are under way, timers, and children
// that have ended.
#include <mqueue.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>

#include "state.h"

enum { STACK_SIZE = 1 << 16, INTERVAL_MS = 100, FAR_S = 5000 };

static void nobody(int number) { (void)number; }
static volatile sig_atomic_t calls, on_stack, last_value;

static sigset_t set_of(int first, int second) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, first);
    if (second) sigaddset(&set, second);
    return set;
}
static int is_blocked(int number) {
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    return sigismember(&now, number);
}

static void set_actions(void) {
    struct sigaction action = {.sa_handler = nobody, .sa_flags = SA_RESTART | SA_NODEFER};
    action.sa_mask = set_of(SIGTERM, SIGRTMAX);
    EXPECT_EQ(sigaction(SIGHUP, &action, NULL), 0);
    action.sa_flags = SA_RESETHAND | SA_NOCLDSTOP;
    EXPECT_EQ(sigaction(SIGRTMAX - 3, &action, NULL), 0);
    EXPECT(signal(SIGQUIT, SIG_IGN) != SIG_ERR);
    EXPECT(signal(SIGTTOU, SIG_DFL) != SIG_ERR);
}
static void has_actions(void) {
    struct sigaction action;
    EXPECT_EQ(sigaction(SIGHUP, NULL, &action), 0);
    EXPECT(action.sa_handler == nobody);
    EXPECT_EQ(action.sa_flags & (SA_RESTART | SA_NODEFER | SA_RESETHAND | SA_ONSTACK | SA_SIGINFO),
              SA_RESTART | SA_NODEFER);
    EXPECT(sigismember(&action.sa_mask, SIGTERM) && sigismember(&action.sa_mask, SIGRTMAX));
    EXPECT_EQ(sigismember(&action.sa_mask, SIGHUP), 0);
    EXPECT_EQ(sigaction(SIGTTOU, NULL, &action), 0);
    EXPECT(action.sa_handler == SIG_DFL);
}
static void ignores(void) {
    struct sigaction action;
    EXPECT_EQ(sigaction(SIGQUIT, NULL, &action), 0);
    EXPECT(action.sa_handler == SIG_IGN);
    EXPECT_EQ(raise(SIGQUIT), 0);
}
static void acts_once(void) {
    struct sigaction action;
    EXPECT_EQ(raise(SIGRTMAX - 3), 0);
    EXPECT_EQ(sigaction(SIGRTMAX - 3, NULL, &action), 0);
    EXPECT(action.sa_handler == SIG_DFL);
}

static char* alternate;
static void on_alternate(int number, siginfo_t* info, void* context) {
    char here;
    on_stack = &here > alternate && &here < alternate + STACK_SIZE;
    last_value = info->si_value.sival_int;
}
static void set_alternate(void) {
    alternate = malloc(STACK_SIZE);
    stack_t stack = {.ss_sp = alternate, .ss_size = STACK_SIZE};
    struct sigaction action = {.sa_sigaction = on_alternate, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    EXPECT_EQ(sigaltstack(&stack, NULL), 0);
    EXPECT_EQ(sigaction(SIGRTMIN + 1, &action, NULL), 0);
}
static void has_alternate(void) {
    stack_t stack = {0};
    EXPECT_EQ(sigaltstack(NULL, &stack), 0);
    EXPECT(stack.ss_sp == alternate && stack.ss_size == STACK_SIZE && stack.ss_flags == 0);
    EXPECT_EQ(sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = 17}), 0);
    EXPECT(on_stack == 1 && last_value == 17);
}

static void set_pending(void) {
    EXPECT_EQ(kill(getpid(), SIGUSR2), 0);
    EXPECT_EQ(kill(getpid(), SIGUSR2), 0);  // which is the same one
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(sigqueue(getpid(), SIGRTMIN + 3, (union sigval){.sival_int = 30 + i}), 0);
        EXPECT_EQ(sigqueue(getpid(), SIGRTMIN + 2, (union sigval){.sival_int = 20 + i}), 0);
    }
    siginfo_t info = {.si_code = -77, .si_value.sival_int = 40};
    EXPECT_EQ(syscall(SYS_rt_tgsigqueueinfo, getpid(), getpid(), SIGRTMIN + 4, &info), 0);
}
static void has_pending(void) {
    sigset_t now, one = set_of(SIGUSR2, 0);
    struct timespec none = {0, 0};
    siginfo_t info;
    EXPECT_EQ(sigpending(&now), 0);
    EXPECT(sigismember(&now, SIGUSR2) && sigismember(&now, SIGRTMIN + 2));
    EXPECT_EQ(sigtimedwait(&one, &info, &none), SIGUSR2);
    EXPECT(info.si_code == SI_USER && info.si_pid == getpid());
    EXPECT_ERRNO(sigtimedwait(&one, &info, &none), EAGAIN);
}
static void has_queue(void) {
    sigset_t both = set_of(SIGRTMIN + 2, SIGRTMIN + 3);
    struct timespec none = {0, 0};
    for (int i = 0; i < 6; i++) {  // the lower number first, each in its order
        siginfo_t info;
        EXPECT_EQ(sigtimedwait(&both, &info, &none), SIGRTMIN + 2 + i / 3);
        EXPECT_EQ(info.si_value.sival_int, 20 + i / 3 * 10 + i % 3);
        EXPECT_EQ(info.si_code, SI_QUEUE);
    }
    EXPECT_ERRNO(sigtimedwait(&both, NULL, &none), EAGAIN);
}
static void has_own_signal(void) {
    sigset_t one = set_of(SIGRTMIN + 4, 0);
    struct timespec none = {0, 0};
    siginfo_t info;
    EXPECT_EQ(sigtimedwait(&one, &info, &none), SIGRTMIN + 4);
    EXPECT(info.si_code == -77 && info.si_value.sival_int == 40);
}
static void has_mask(void) {
    for (int i = 2; i <= 4; i++) EXPECT_EQ(is_blocked(SIGRTMIN + i), 1);
    EXPECT_EQ(is_blocked(SIGUSR2), 1);
    EXPECT_EQ(is_blocked(SIGRTMIN + 1), 0);
    EXPECT_EQ(is_blocked(SIGHUP), 0);
}

// Threads block what is for the main thread, and perhaps more.
static void block_in_thread(int number) {
    sigset_t set = set_of(SIGUSR1, SIGRTMIN + 9);
    if (number) sigaddset(&set, number);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

// A thread with a mask, a pending signal and an alternate stack of its own.
static pthread_t masked;
static sem_t masked_ready, masked_go;
static const char* masked_result;
static const char* look_at_own(const void* memory) {
    stack_t stack = {0};
    sigset_t now, one = set_of(SIGWINCH, 0);
    if (!is_blocked(SIGWINCH) || is_blocked(SIGHUP)) return "the mask of a thread";
    if (sigpending(&now) != 0 || !sigismember(&now, SIGWINCH)) return "a thread's pending signal";
    if (sigtimedwait(&one, NULL, &(struct timespec){0, 0}) != SIGWINCH) return "the signal";
    if (sigaltstack(NULL, &stack) != 0 || stack.ss_sp != memory) return "a thread's stack";
    return stack.ss_flags == (int)(1U << 31) ? NULL : "SS_AUTODISARM";
}
static void* be_masked(void* unused) {
    void* memory = malloc(STACK_SIZE);
    stack_t stack = {.ss_sp = memory, .ss_size = STACK_SIZE, .ss_flags = (int)(1U << 31)};
    block_in_thread(SIGWINCH);
    pthread_kill(pthread_self(), SIGWINCH);
    sigaltstack(&stack, NULL);
    sem_post(&masked_ready);
    while (sem_wait(&masked_go) != 0) continue;
    masked_result = look_at_own(memory);
    return unused;
}
static void set_masked(void) {
    EXPECT(sem_init(&masked_ready, 0, 0) == 0 && sem_init(&masked_go, 0, 0) == 0);
    EXPECT_EQ(pthread_create(&masked, NULL, be_masked, NULL), 0);
    while (sem_wait(&masked_ready) != 0) continue;
}
static void is_masked(void) {
    sigset_t now;
    EXPECT_EQ(sigpending(&now), 0);
    EXPECT_EQ(sigismember(&now, SIGWINCH), 0);  // it is the thread's
    EXPECT_EQ(sem_post(&masked_go), 0);
    EXPECT_EQ(pthread_join(masked, NULL), 0);
    if (masked_result) state_say("not kept: %s", masked_result);
}

// A thread inside of a handler, on its alternate stack; where it came from is intact.
static pthread_t handling;
static sem_t handling_go;
static volatile sig_atomic_t is_handling, handled_well;
static void wait_in_handler(int number) {
    stack_t stack = {0};
    sigaltstack(NULL, &stack);
    is_handling = 1;
    while (sem_wait(&handling_go) != 0) continue;
    handled_well = stack.ss_flags == SS_ONSTACK && is_blocked(number) && is_blocked(SIGPIPE);
    sigaltstack(NULL, &stack);
    handled_well = handled_well && stack.ss_flags == SS_ONSTACK;
}
static void* be_handling(void* unused) {
    stack_t stack = {.ss_sp = malloc(STACK_SIZE), .ss_size = STACK_SIZE};
    sigaltstack(&stack, NULL);
    block_in_thread(0);
    volatile double before = 1.25;
    pthread_kill(pthread_self(), SIGRTMIN + 7);
    if (before != 1.25 || is_blocked(SIGRTMIN + 7) || is_blocked(SIGPIPE)) handled_well = 0;
    return unused;
}
static void set_handling(void) {
    struct sigaction action = {.sa_handler = wait_in_handler, .sa_flags = SA_ONSTACK};
    action.sa_mask = set_of(SIGPIPE, 0);
    EXPECT_EQ(sigaction(SIGRTMIN + 7, &action, NULL), 0);
    EXPECT_EQ(sem_init(&handling_go, 0, 0), 0);
    EXPECT_EQ(pthread_create(&handling, NULL, be_handling, NULL), 0);
    while (!is_handling) usleep(1000);
}
static void is_in_handler(void) {
    EXPECT_EQ(sem_post(&handling_go), 0);
    EXPECT_EQ(pthread_join(handling, NULL), 0);
    EXPECT_EQ(handled_well, 1);
}

// A thread in sigsuspend, with another mask for that time.
static pthread_t suspended;
static volatile sig_atomic_t suspends, was_suspended;
static void on_suspended(int number) { was_suspended = is_blocked(SIGHUP); }
static void* be_suspended(void* unused) {
    sigset_t meanwhile;
    block_in_thread(SIGRTMIN + 8);
    pthread_sigmask(SIG_SETMASK, NULL, &meanwhile);
    sigdelset(&meanwhile, SIGRTMIN + 8);
    sigaddset(&meanwhile, SIGHUP);
    suspends = 1;
    int result = sigsuspend(&meanwhile), error = errno;
    if (result != -1 || error != EINTR || is_blocked(SIGHUP) || !is_blocked(SIGRTMIN + 8))
        was_suspended = 0;
    return unused;
}
static void set_suspended(void) {
    struct sigaction action = {.sa_handler = on_suspended};
    EXPECT_EQ(sigaction(SIGRTMIN + 8, &action, NULL), 0);
    EXPECT_EQ(pthread_create(&suspended, NULL, be_suspended, NULL), 0);
    while (!suspends) usleep(1000);
}
static void is_suspended(void) {
    EXPECT_EQ(pthread_kill(suspended, SIGRTMIN + 8), 0);
    EXPECT_EQ(pthread_join(suspended, NULL), 0);
    EXPECT_EQ(was_suspended, 1);
}

static timer_t far, silent, repeated, counted, directed;
static long timers_begin_ms;
static pthread_t directed_to;
static timer_t make_timer(clockid_t clock, int how, int number, int value) {
    struct sigevent event = {.sigev_notify = how, .sigev_signo = number};
    timer_t timer = NULL;
    event.sigev_value.sival_int = value;
    CHECK_EQ(timer_create(clock, how == SIGEV_NONE && value == 0 ? NULL : &event, &timer), 0);
    return timer;
}
static void on_repeated(int number, siginfo_t* info, void* context) {
    calls += info->si_code == SI_TIMER && info->si_value.sival_int == 5;
}
static void set_posix_timers(void) {
    struct itimerspec in_a_while = {{7, 11}, {FAR_S, 0}}, often = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_sigaction = on_repeated, .sa_flags = SA_SIGINFO | SA_RESTART};
    often.it_interval.tv_nsec = often.it_value.tv_nsec = INTERVAL_MS * 1000000L;
    EXPECT_EQ(sigaction(SIGRTMIN + 9, &action, NULL), 0);
    far = make_timer(CLOCK_BOOTTIME, SIGEV_SIGNAL, SIGRTMIN + 9, 1);
    silent = make_timer(CLOCK_REALTIME, SIGEV_NONE, 0, 1);
    repeated = make_timer(CLOCK_MONOTONIC, SIGEV_SIGNAL, SIGRTMIN + 9, 5);
    counted = make_timer(CLOCK_MONOTONIC, SIGEV_SIGNAL, SIGRTMIN + 10, 6);
    EXPECT_EQ(timer_settime(far, 0, &in_a_while, NULL), 0);
    EXPECT_EQ(timer_settime(silent, 0, &in_a_while, NULL), 0);
    EXPECT_EQ(timer_settime(repeated, 0, &often, NULL), 0);
    EXPECT_EQ(timer_settime(counted, 0, &often, NULL), 0);
    timers_begin_ms = state_ms();
}
static void is_armed(timer_t timer) {
    struct itimerspec now;
    EXPECT_EQ(timer_gettime(timer, &now), 0);
    EXPECT(now.it_interval.tv_sec == 7 && now.it_interval.tv_nsec == 11);
    EXPECT(now.it_value.tv_sec > FAR_S / 2 && now.it_value.tv_sec < FAR_S);
}
static void timers_are_armed(void) {
    is_armed(far);
    EXPECT_EQ(timer_delete(far), 0);
}
static void silent_timer_runs(void) { is_armed(silent); }
static void timer_repeats(void) {
    EXPECT(calls > 0);
    int before = calls;
    while (calls == before) usleep(1000);  // and goes on
    EXPECT_EQ(timer_delete(repeated), 0);
}
static void timer_has_overrun(void) {
    sigset_t one = set_of(SIGRTMIN + 10, 0);
    siginfo_t info;
    long periods = (state_ms() - timers_begin_ms) / INTERVAL_MS;
    EXPECT_EQ(sigwaitinfo(&one, &info), SIGRTMIN + 10);
    EXPECT(info.si_code == SI_TIMER && info.si_value.sival_int == 6);
    EXPECT(info.si_overrun >= periods - 1);
    EXPECT(timer_getoverrun(counted) >= info.si_overrun);
    EXPECT_EQ(timer_delete(counted), 0);
}
static volatile int directed_signal;
static void* be_directed(void* unused) {
    sigset_t one = set_of(SIGRTMIN + 11, 0);
    siginfo_t info;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN + 11};
    struct itimerspec soon = {.it_value = {STATE_WAIT_MS / 1000, 0}};
    block_in_thread(SIGRTMIN + 11);
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    if (timer_create(CLOCK_MONOTONIC, &event, &directed) != 0) return unused;
    if (timer_settime(directed, 0, &soon, NULL) != 0) return unused;
    int got = -1;
    while (got < 0) got = sigwaitinfo(&one, &info);  // a stop of the process ends it
    directed_signal = got == SIGRTMIN + 11 && info.si_code == SI_TIMER;
    return unused;
}
static void set_directed(void) {
    EXPECT_EQ(pthread_create(&directed_to, NULL, be_directed, NULL), 0);
}
static void timer_was_directed(void) {
    EXPECT_EQ(pthread_join(directed_to, NULL), 0);
    EXPECT_EQ(directed_signal, 1);
}

static void set_interval(void) {
    struct itimerval time = {{9, 70000}, {FAR_S, 0}};
    EXPECT_EQ(setitimer(ITIMER_REAL, &time, NULL), 0);
}
static void has_interval(void) {
    struct itimerval now, none = {{0, 0}, {0, 0}};
    EXPECT_EQ(getitimer(ITIMER_REAL, &now), 0);
    EXPECT(now.it_interval.tv_sec == 9 && now.it_interval.tv_usec == 70000);
    EXPECT(now.it_value.tv_sec > FAR_S / 2 && now.it_value.tv_sec < FAR_S);
    EXPECT_EQ(setitimer(ITIMER_REAL, &none, NULL), 0);
}
static void set_alarm(void) { EXPECT_EQ(alarm(FAR_S), 0); }
static void has_alarm(void) {
    unsigned left = alarm(0);
    EXPECT(left > FAR_S / 2 && left < FAR_S);
}

// The queue tells of a message, once.
static mqd_t queue;
static void set_notified(void) {
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 12};
    struct mq_attr attributes = {.mq_maxmsg = 2, .mq_msgsize = 8};
    char name[40];
    event.sigev_value.sival_int = 55;
    snprintf(name, sizeof name, "/gpr-state-%d", getpid());
    EXPECT((queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes)) >= 0);
    EXPECT_EQ(mq_unlink(name), 0);
    EXPECT_EQ(mq_notify(queue, &event), 0);
}
static void is_notified(void) {
    sigset_t one = set_of(SIGRTMIN + 12, 0);
    siginfo_t info;
    EXPECT_EQ(mq_send(queue, "x", 1, 0), 0);
    EXPECT_EQ(sigwaitinfo(&one, &info), SIGRTMIN + 12);
    EXPECT(info.si_code == SI_MESGQ && info.si_value.sival_int == 55);
    EXPECT_EQ(info.si_pid, getpid());
}

static pid_t dead;
static void set_dead_child(void) {
    siginfo_t info = {0};
    dead = fork();
    if (dead == 0) _exit(23);
    EXPECT_EQ(waitid(P_PID, (id_t)dead, &info, WEXITED | WNOWAIT), 0);
}
static void has_dead_child(void) {
    siginfo_t info = {0};
    EXPECT_EQ(waitid(P_PID, (id_t)dead, &info, WEXITED | WNOHANG), 0);
    EXPECT(info.si_pid == dead && info.si_code == CLD_EXITED && info.si_status == 23);
}
// In a child, whose children vanish.
static void set_no_zombies(void) {
    struct sigaction action = {.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT};
    EXPECT_EQ(sigaction(SIGCHLD, &action, NULL), 0);
}
static void has_no_zombies(void) {
    pid_t child = fork();
    if (child == 0) _exit(0);
    EXPECT_ERRNO(waitpid(child, NULL, 0), ECHILD);
}

static const struct kind kinds[] = {
    {"actions", set_actions, has_actions},
    {"ignored signal", NULL, ignores},
    {"action for once", NULL, acts_once},
    {"alternate stack", set_alternate, has_alternate},
    {"pending signal", set_pending, has_pending},
    {"queue of signals with values", NULL, has_queue},
    {"signal of a thread with a code", NULL, has_own_signal},
    {"mask", NULL, has_mask},
    {"mask and signal of another thread", set_masked, is_masked},
    {"handler under way", set_handling, is_in_handler},
    {"sigsuspend under way", set_suspended, is_suspended},
    {"timer that is armed", set_posix_timers, timers_are_armed},
    {"timer without a signal", NULL, silent_timer_runs},
    {"timer that repeats", NULL, timer_repeats},
    {"timer with overruns", NULL, timer_has_overrun},
    {"timer for a thread", set_directed, timer_was_directed},
    {"interval timer", set_interval, has_interval},
    {"alarm", set_alarm, has_alarm, 1},
    {"notification of a queue", set_notified, is_notified},
    {"dead child", set_dead_child, has_dead_child},
    {"children without a trace", set_no_zombies, has_no_zombies, 1},
};

int main(void) {
    // What threads must not get either is blocked before there are any.
    sigset_t set = set_of(SIGUSR2, SIGRTMIN + 2);
    for (int i = 3; i <= 12; i++)
        if (i < 5 || i > 9) sigaddset(&set, SIGRTMIN + i);
    CHECK_EQ(sigprocmask(SIG_BLOCK, &set, NULL), 0);
    return state_run(kinds, sizeof kinds / sizeof *kinds);
}
