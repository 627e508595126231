// fork_churn [ROUNDS [PAUSE]]: children of a process with much memory that end, or become another
// program. Before them and after them it sleeps so many seconds.
#include <sys/mman.h>
#include <sys/wait.h>

#include "guest.h"

#define SIZE (20UL << 20)

static void wait_for(pid_t child) {
    int status = 0;
    CHECK(child > 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

int main(int argc, char** argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 4;
    unsigned pause_s = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
    char* memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    memset(memory, 1, SIZE);
    sleep(pause_s);
    for (int i = 0; i < rounds; i++) {
        pid_t child = fork();
        if (child == 0) {
            memory[0] = 2;
            _exit(memory[SIZE - 1] != 1);
        }
        wait_for(child);
        child = fork();
        if (child == 0) {
            execl("/bin/true", "true", (char*)NULL);
            _exit(1);
        }
        wait_for(child);
    }
    sleep(pause_s);
    return guest_passed();
}
