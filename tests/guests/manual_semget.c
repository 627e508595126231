// semget(2), semop and semctl: keys, flags, limits, permissions, undo.
#include <signal.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <time.h>

#include "manual.h"

static int set = -1;

static void creation(void) {
    key_t key = 0x67700000 + (getpid() & 0xffff);
    TRY(semget(key, 3, 0600));
    TRY(semget(IPC_PRIVATE, 0, 0600));
    TRY(semget(IPC_PRIVATE, -1, 0600));
    TRY(semget(IPC_PRIVATE, 1000000, 0600));
    int id = semget(key, 3, IPC_CREAT | IPC_EXCL | 0640);
    SAY("made %d", id >= 0);
    TRY(semget(key, 3, IPC_CREAT | IPC_EXCL | 0600));
    TRY(semget(key, 4, 0600));
    SAY("%d %d", semget(key, 0, 0) == id, semget(key, 2, 0) == id);
    struct semid_ds status;
    TRY(semctl(id, 0, IPC_STAT, &status));
    SAY("%o %lu uid %d otime %ld", status.sem_perm.mode, (unsigned long)status.sem_nsems,
        status.sem_perm.uid, (long)status.sem_otime);
    TRY(semctl(id, 0, IPC_STAT, manual_bad_pointer()));
    status.sem_perm.mode = 0600;
    TRY(semctl(id, 0, IPC_SET, &status));
    TRY(semctl(id, 0, IPC_SET, manual_bad_pointer()));
    TRY(semctl(id, 0, 77));
    TRY(semctl(id, 3, GETVAL));
    TRY(semctl(id, -1, GETVAL));
    TRY(semctl(id, 0, SETVAL, -1));
    TRY(semctl(id, 0, SETVAL, 32768));
    TRY(semctl(id, 0, SETVAL, 32767));
    TRY(semctl(id, 0, GETVAL));
    unsigned short values[3] = {1, 2, 3}, read[3] = {0};
    TRY(semctl(id, 0, SETALL, values));
    TRY(semctl(id, 0, GETALL, read));
    SAY("%d %d %d", read[0], read[1], read[2]);
    values[1] = 40000;
    TRY(semctl(id, 0, SETALL, values));
    TRY(semctl(id, 0, SETALL, manual_bad_pointer()));
    TRY(semctl(id, 0, GETALL, manual_bad_pointer()));
    TRY(semctl(id, 1, GETPID) == 0 || semctl(id, 1, GETPID) == getpid());
    if (fork() == 0) {
        manual_become_nobody();
        TRY(semctl(id, 0, GETVAL));
        TRY(semctl(id, 0, SETVAL, 1));
        TRY(semctl(id, 0, IPC_RMID));
        TRY(semctl(id, 0, IPC_STAT, &status));
        TRY(semget(key, 1, 0400));
        TRY_OK(semget(key, 1, 0));
        struct sembuf one = {0, 1, 0};
        TRY(semop(id, &one, 1));
        _exit(0);
    }
    wait(NULL);
    TRY(semctl(id, 0, IPC_RMID));
    TRY(semctl(id, 0, IPC_RMID));
    TRY(semctl(id, 0, GETVAL));
    struct sembuf one = {0, 1, 0};
    TRY(semop(id, &one, 1));
    TRY(semop(-1, &one, 1));
}

static volatile int handled;
static void on_alarm(int number) { handled++; }

static void operations(void) {
    set = semget(IPC_PRIVATE, 2, 0600);
    struct sembuf take = {0, -1, 0}, take_now = {0, -1, IPC_NOWAIT}, give = {0, 1, 0};
    struct sembuf zero = {0, 0, IPC_NOWAIT}, beyond = {2, 1, 0}, big = {0, 32767, 0};
    TRY(semop(set, &take_now, 1));
    TRY(semop(set, &zero, 1));
    TRY(semop(set, &give, 1));
    TRY(semop(set, &zero, 1));
    TRY(semop(set, &take, 1));
    TRY(semop(set, &beyond, 1));
    TRY(semop(set, &big, 1));
    TRY(semop(set, &give, 1));
    TRY(semop(set, &give, 0));
    TRY(semop(set, &give, 1000));
    TRY(semop(set, (struct sembuf*)manual_bad_pointer(), 1));
    TRY(semctl(set, 0, SETVAL, 0));
    // All or nothing.
    struct sembuf both[2] = {{1, 1, 0}, {0, -1, IPC_NOWAIT}};
    TRY(semop(set, both, 2));
    TRY(semctl(set, 1, GETVAL));
    struct timespec soon = {0, 20000000}, bad = {0, 1000000000};
    TRY(semtimedop(set, &take, 1, &soon));
    TRY(semtimedop(set, &take, 1, &bad));
    TRY(semtimedop(set, &take, 1, (struct timespec*)manual_bad_pointer()));
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    ualarm(20000, 20000);       // again: the first may come before the call
    TRY(semop(set, &take, 1));  // not restarted, whatever the flags
    SAY("handled %d", handled > 0);
    ualarm(0, 0);
}

static void waiting(void) {
    set = semget(IPC_PRIVATE, 1, 0600);
    struct sembuf take = {0, -1, 0}, give = {0, 1, 0};
    pid_t taker = fork();
    if (taker == 0) {
        if (semop(set, &take, 1) != 0) _exit(100 + errno);
        _exit(semop(set, &take, 1) == -1 ? errno : 0);
    }
    while (semctl(set, 0, GETNCNT) != 1) usleep(1000);
    TRY(semctl(set, 0, GETZCNT));
    TRY(semop(set, &give, 1));
    while (semctl(set, 0, GETNCNT) != 1) usleep(1000);
    SAY("last by the taker: %d", semctl(set, 0, GETPID) == taker);
    TRY(semctl(set, 0, SETVAL, 0));
    TRY(semctl(set, 0, IPC_RMID));
    int status;
    waitpid(taker, &status, 0);
    SAY("%s", strerrorname_np(WEXITSTATUS(status)));
}

static void undo(void) {
    set = semget(IPC_PRIVATE, 1, 0600);
    semctl(set, 0, SETVAL, 5);
    if (fork() == 0) {
        struct sembuf take = {0, -2, SEM_UNDO};
        TRY(semop(set, &take, 1));
        TRY(semctl(set, 0, GETVAL));
        if (fork() == 0) _exit(0);  // undoes nothing: it inherits none
        wait(NULL);
        TRY(semctl(set, 0, GETVAL));
        _exit(0);
    }
    wait(NULL);
    TRY(semctl(set, 0, GETVAL));
    struct seminfo info;
    TRY(semctl(0, 0, IPC_INFO, &info) >= 0);
    SAY("%d %d", info.semvmx, info.semopm);
}

static void remove_set(void) {
    if (set >= 0) semctl(set, 0, IPC_RMID);
}

static void operations_then_remove(void) { operations(), remove_set(); }
static void undo_then_remove(void) { undo(), remove_set(); }

int main(void) {
    manual_begin();
    manual_in_child("creation", creation);
    manual_in_child("operations", operations_then_remove);
    manual_in_child("waiting", waiting);
    manual_in_child("undo", undo_then_remove);
    return guest_passed();
}
