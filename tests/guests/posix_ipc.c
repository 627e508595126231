// POSIX shared memory, process-shared semaphores and mutexes, message queues.
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "guest.h"

struct shared {
    sem_t go, done;
    pthread_mutex_t mutex;
    long counter;
};

int main(void) {
    char name[50];
    snprintf(name, sizeof name, "/gpr-guest-%d", getpid());
    int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    CHECK(fd >= 0);
    CHECK_EQ(ftruncate(fd, 4096), 0);
    struct shared* shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK_EQ(shm_unlink(name), 0);
    pthread_mutexattr_t attribute;
    pthread_mutexattr_init(&attribute);
    pthread_mutexattr_setpshared(&attribute, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&shared->mutex, &attribute);
    sem_init(&shared->go, 1, 0);
    sem_init(&shared->done, 1, 0);
    struct mq_attr queue_attribute = {.mq_maxmsg = 5, .mq_msgsize = 100};
    mqd_t queue = mq_open(name, O_RDWR | O_CREAT, 0600, &queue_attribute);
    if (queue >= 0) CHECK_EQ(mq_unlink(name), 0);
    for (int i = 0; i < 3; i++)
        if (fork() == 0) {
            sem_wait(&shared->go);
            for (int j = 0; j < 10000; j++) {
                pthread_mutex_lock(&shared->mutex);
                shared->counter++;
                pthread_mutex_unlock(&shared->mutex);
            }
            if (queue >= 0) CHECK_EQ(mq_send(queue, "ready", 5, (unsigned)i), 0);
            sem_post(&shared->done);
            _exit(0);
        }
    for (int i = 0; i < 3; i++) sem_post(&shared->go);
    for (int i = 0; i < 3; i++) sem_wait(&shared->done);
    CHECK_EQ(shared->counter, 30000);
    char text[100];
    unsigned priority = 9;
    if (queue >= 0) CHECK_EQ(mq_receive(queue, text, sizeof text, &priority), 5);
    if (queue >= 0) CHECK_EQ(priority, 2);
    for (int i = 0; i < 3; i++) CHECK(wait(NULL) > 0);
    return guest_passed();
}
