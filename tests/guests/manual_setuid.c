// setuid(2), seteuid, setreuid, setresuid and getresuid; the same of groups; what they do to
// capabilities, other threads and /proc.
#include <fcntl.h>
#include <pthread.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>

#include "manual.h"

static void say_ids(const char* when) {
    uid_t r, e, s;
    gid_t gr, ge, gs;
    CHECK_EQ(getresuid(&r, &e, &s), 0);
    CHECK_EQ(getresgid(&gr, &ge, &gs), 0);
    SAY("%s: %u %u %u, %u %u %u, file %d %d", when, r, e, s, gr, ge, gs, setfsuid(-1),
        setfsgid(-1));
}

static void for_good(void) {
    TRY(setuid(-1));
    TRY(setgid(-1));
    TRY(setgid(12));
    TRY(setuid(11));
    say_ids("all of them");
    TRY(setuid(0));
    TRY(setuid(11));
    TRY(seteuid(0));
    TRY(setreuid(-1, 0));
    TRY(setresuid(-1, -1, 12));
    TRY(setgid(0));
    TRY(setgroups(0, NULL));
    SAY("dumpable %d", prctl(PR_GET_DUMPABLE));
}

static void for_a_while(void) {
    TRY(seteuid(21));
    say_ids("effective");
    TRY(open("/proc/1/mem", 0) == -1);
    TRY(seteuid(22));
    TRY(seteuid(0));
    say_ids("back");
    TRY(setresuid(31, 32, 33));
    say_ids("three");
    TRY(setresuid(33, 31, 32));
    say_ids("turned");
    TRY(setresuid(34, -1, -1));
    TRY(seteuid(-1));
    TRY(setuid(32));
    say_ids("effective again");
    TRY(setreuid(31, 33));
    TRY(setreuid(32, -1));
    say_ids("real");
}

static void real_and_effective(void) {
    TRY(setregid(51, 52));
    say_ids("groups");
    TRY(setreuid(41, 42));
    say_ids("saved follows effective");
    TRY(setreuid(42, 41));
    say_ids("swapped");
    TRY(setreuid(-1, -1));
    TRY(setreuid(43, -1));
    TRY(setregid(-1, 51));
    TRY(setregid(51, -1));
    say_ids("end");
}

static void errors(void) {
    uid_t id;
    TRY(getresuid((uid_t*)manual_bad_pointer(), &id, &id));
    TRY(getresuid(&id, (uid_t*)manual_bad_pointer(), &id));
    TRY(getresgid(&id, &id, (gid_t*)manual_bad_pointer()));
    gid_t groups[3] = {1, 2, 3}, read[70000];
    TRY(setgroups(3, groups));
    TRY(getgroups(0, NULL));
    TRY(getgroups(2, read));
    TRY(getgroups(3, read));
    SAY("%u %u %u", read[0], read[1], read[2]);
    TRY(getgroups(-1, read));
    TRY(getgroups(3, (gid_t*)manual_bad_pointer()));
    TRY(setgroups(70000, read));
    TRY(setgroups(3, (gid_t*)manual_bad_pointer()));
    groups[1] = -1;
    TRY(setgroups(3, groups));
    TRY(getgroups(0, NULL));
}

static void* of_another_thread(void* none) {
    say_ids("thread");
    return NULL;
}
static int go[2];
static void* waits(void* none) {
    char byte;
    read(go[0], &byte, 1);
    say_ids("older thread");
    return NULL;
}
static void threads(void) {
    CHECK_EQ(pipe(go), 0);
    pthread_t older, younger;
    pthread_create(&older, NULL, waits, NULL);
    TRY(setresgid(61, 62, 63));
    TRY(setresuid(61, 62, 63));
    pthread_create(&younger, NULL, of_another_thread, NULL);
    pthread_join(younger, NULL);
    write(go[1], "x", 1);
    pthread_join(older, NULL);
    TRY(syscall(SYS_setresuid, 63, 63, 63));  // of this thread alone
    pthread_create(&younger, NULL, of_another_thread, NULL);
    pthread_join(younger, NULL);
}

static void capabilities(void) {
    TRY(prctl(PR_SET_KEEPCAPS, 1));
    TRY(setresuid(71, 71, 71));
    FILE* status = fopen("/proc/self/status", "r");
    for (char line[256]; fgets(line, sizeof line, status);)
        if (!strncmp(line, "CapEff", 6) || !strncmp(line, "Uid", 3) || !strncmp(line, "Gid", 3))
            printf("%s", line);
    TRY(prctl(PR_GET_KEEPCAPS));
    TRY(setuid(0));
}

int main(void) {
    manual_begin();
    manual_in_child("for good", for_good);
    manual_in_child("for a while", for_a_while);
    manual_in_child("real and effective", real_and_effective);
    manual_in_child("errors", errors);
    manual_in_child("threads", threads);
    manual_in_child("capabilities", capabilities);
    return guest_passed();
}
