// shmget(2), shmat, shmdt and shmctl: keys, sizes, permissions, addresses, life.
#include <signal.h>
#include <sys/ipc.h>
#include <sys/shm.h>

#include "manual.h"

static void creation(void) {
    key_t key = 0x67710000 + (getpid() & 0xffff);
    TRY(shmget(key, 4096, 0600));
    TRY(shmget(key, 0, IPC_CREAT | 0600));
    TRY(shmget(IPC_PRIVATE, (size_t)-1, 0600));
    int id = shmget(key, 5000, IPC_CREAT | IPC_EXCL | 0640);
    SAY("%d", id >= 0);
    TRY(shmget(key, 5000, IPC_CREAT | IPC_EXCL | 0640));
    TRY(shmget(key, 5001, 0600));
    TRY(shmget(key, 9000, 0600));
    SAY("%d %d", shmget(key, 0, 0) == id, shmget(key, 5000, IPC_CREAT) == id);
    struct shmid_ds status;
    TRY(shmctl(id, IPC_STAT, &status));
    SAY("%o %zu, %lu attached, by me %d, last %d", status.shm_perm.mode, status.shm_segsz,
        (unsigned long)status.shm_nattch, status.shm_cpid == getpid(), status.shm_lpid);
    TRY(shmctl(id, IPC_STAT, (struct shmid_ds*)manual_bad_pointer()));
    TRY(shmctl(id, 77, &status));
    TRY(shmctl(-1, IPC_STAT, &status));
    TRY(shmctl(id, SHM_LOCK, NULL));
    TRY(shmctl(id, IPC_STAT, &status));
    SAY("locked %d", (status.shm_perm.mode & SHM_LOCKED) != 0);
    TRY(shmctl(id, SHM_UNLOCK, NULL));
    if (fork() == 0) {
        manual_become_nobody();
        TRY(shmat(id, NULL, 0));
        TRY(shmat(id, NULL, SHM_RDONLY));
        TRY(shmctl(id, IPC_STAT, &status));
        TRY(shmctl(id, IPC_RMID, NULL));
        TRY(shmget(key, 4096, 0400));
        _exit(0);
    }
    wait(NULL);
    TRY(shmctl(id, IPC_RMID, NULL));
    TRY(shmctl(id, IPC_RMID, NULL));
    TRY(shmat(id, NULL, 0));
    TRY(shmget(key, 4096, 0600));
}

static void addresses(void) {
    int id = shmget(IPC_PRIVATE, 3 * 4096, 0600);
    char* one = (char*)shmat(id, NULL, 0);
    SAY("%d", one != (void*)-1);
    strcpy(one + 5000, "text");
    char* two = (char*)shmat(id, NULL, SHM_RDONLY);
    SAY("%d %s", one != two, two + 5000);
    char* room = (char*)mmap(NULL, 16 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TRY(shmat(id, room + 4096, 0));
    SAY("%d", shmat(id, room + 4096 + 100, SHM_RND | SHM_REMAP) == room + 4096);
    TRY(shmat(id, room + 100, 0));
    TRY(shmat(id, NULL, SHM_REMAP));
    TRY(shmat(-1, NULL, 0));
    SAY("%s", room + 4096 + 5000);
    strcpy(room + 4096 + 5000, "new");
    SAY("%s %s", one + 5000, two + 5000);
    struct shmid_ds status;
    shmctl(id, IPC_STAT, &status);
    SAY("%lu attached", (unsigned long)status.shm_nattch);
    TRY(shmdt(two + 4096));
    TRY(shmdt(two));
    TRY(shmdt(two));
    TRY(shmdt(room));
    // A hole, and a piece of other rights, do not keep the rest from being detached.
    TRY(munmap(one + 4096, 4096));
    TRY(mprotect(one + 8192, 4096, PROT_READ));
    TRY(shmdt(one));
    shmctl(id, IPC_STAT, &status);
    SAY("%lu attached", (unsigned long)status.shm_nattch);
    TRY(munmap(room, 16 * 4096));
    shmctl(id, IPC_STAT, &status);
    SAY("%lu attached", (unsigned long)status.shm_nattch);
    TRY(shmctl(id, IPC_RMID, NULL));
}

static void life(void) {
    int id = shmget(IPC_PRIVATE, 4096, 0600);
    int* number = (int*)shmat(id, NULL, 0);
    struct shmid_ds status;
    TRY(shmctl(id, IPC_RMID, NULL));  // it lives as long as somebody has it
    SAY("%d", shmctl(id, IPC_STAT, &status) == 0 && (status.shm_perm.mode & SHM_DEST));
    *number = 5;
    if (fork() == 0) {
        usleep(40000);
        shmctl(id, IPC_STAT, &status);
        SAY("child: %d, %lu attached", *number, (unsigned long)status.shm_nattch);
        *number = 6;
        int* again = (int*)shmat(id, NULL, 0);
        SAY("%d", again != (void*)-1 && *again == 6);
        *again = 7;
        _exit(0);
    }
    wait(NULL);
    shmctl(id, IPC_STAT, &status);
    SAY("%d, %lu attached", *number, (unsigned long)status.shm_nattch);
    TRY(shmdt(number));
    TRY(shmctl(id, IPC_STAT, &status));
}

static void read_only(void) {
    int id = shmget(IPC_PRIVATE, 4096, 0600);
    volatile int* number = (volatile int*)shmat(id, NULL, SHM_RDONLY);
    SAY("%d", *number);
    shmctl(id, IPC_RMID, NULL);
    TRY(mprotect((void*)number, 4096, PROT_READ | PROT_WRITE));
    *number = 1;
    SAY("not reached, natively");
}

int main(void) {
    manual_begin();
    manual_in_child("creation", creation);
    manual_in_child("addresses", addresses);
    manual_in_child("life", life);
    manual_in_child("read only", read_only);
    return guest_passed();
}
