// System V shared memory, semaphores and messages between parent and child.
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/wait.h>

#include "guest.h"

int main(void) {
    int memory_id = shmget(IPC_PRIVATE, 10000, IPC_CREAT | 0600);
    int semaphore_id = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);
    int queue_id = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
    CHECK(memory_id >= 0 && semaphore_id >= 0 && queue_id >= 0);
    int* memory = shmat(memory_id, NULL, 0);
    CHECK(memory != (void*)-1);
    struct sembuf up = {0, 1, 0}, down = {0, -1, 0};
    struct {
        long type;
        char text[20];
    } message = {5, "from the child"};
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 1000; i++) memory[i] = i * i;
        CHECK_EQ(semop(semaphore_id, &up, 1), 0);
        CHECK_EQ(msgsnd(queue_id, &message, sizeof message.text, 0), 0);
        _exit(0);
    }
    CHECK_EQ(semop(semaphore_id, &down, 1), 0);
    for (int i = 0; i < 1000; i++) CHECK_EQ(memory[i], i * i);
    message.text[0] = 0;
    CHECK_EQ(msgrcv(queue_id, &message, sizeof message.text, 5, 0), sizeof message.text);
    CHECK(strcmp(message.text, "from the child") == 0);
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    int* second = shmat(memory_id, NULL, SHM_RDONLY);
    memory[7] = 4321;
    CHECK_EQ(second[7], 4321);
    CHECK_EQ(shmdt(memory), 0);
    CHECK_EQ(second[7], 4321);
    CHECK_EQ(shmctl(memory_id, IPC_RMID, NULL), 0);
    CHECK_EQ(semctl(semaphore_id, 0, IPC_RMID), 0);
    CHECK_EQ(msgctl(queue_id, IPC_RMID, NULL), 0);
    return guest_passed();
}
