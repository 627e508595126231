// A program that has ended is not busy any more: its file can be written and its shared memory is
// detached as soon as the parent has been told of the end.
#include <fcntl.h>
#include <sys/ipc.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "guest.h"

static void copy_self(const char* to) {
    int from = open("/proc/self/exe", O_RDONLY);
    int copy = open(to, O_CREAT | O_TRUNC | O_WRONLY, 0755);
    CHECK(from >= 0);
    CHECK(copy >= 0);  // not ETXTBSY
    struct stat status;
    CHECK_EQ(fstat(from, &status), 0);
    CHECK_EQ(sendfile(copy, from, NULL, (size_t)status.st_size), status.st_size);
    close(copy);
    close(from);
}

int main(int argc, char** argv) {
    if (argc > 1) {
        int id = atoi(argv[1]);
        CHECK(shmat(id, NULL, 0) != (void*)-1);
        usleep(40000);  // old enough to be split
        return 5;
    }
    for (int i = 0; i < 10; i++) {
        copy_self("copy");
        int id = shmget(IPC_PRIVATE, 4096, 0600);
        char number[16];
        sprintf(number, "%d", id);
        pid_t child = fork();
        if (child == 0) {
            execl("./copy", "copy", number, (char*)NULL);
            _exit(1);
        }
        int status;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK_EQ(WEXITSTATUS(status), 5);
        struct shmid_ds segment;
        CHECK_EQ(shmctl(id, IPC_STAT, &segment), 0);
        CHECK_EQ(segment.shm_nattch, 0);
        CHECK_EQ(shmctl(id, IPC_RMID, NULL), 0);
    }
    return guest_passed();
}
