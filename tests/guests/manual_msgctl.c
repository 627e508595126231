// msgctl(2), msgget, msgsnd and msgrcv: commands, permissions, limits, kinds of message.
#include <signal.h>
#include <sys/ipc.h>
#include <sys/msg.h>

#include "manual.h"

struct message {
    long type;
    char text[64];
};

static void commands(void) {
    int id = msgget(IPC_PRIVATE, 0640);
    struct msqid_ds status;
    TRY(msgctl(id, IPC_STAT, &status));
    SAY("%o uid %d, %lu messages, %lu bytes, most %lu, times %ld %ld", status.msg_perm.mode,
        status.msg_perm.uid, (unsigned long)status.msg_qnum, (unsigned long)status.__msg_cbytes,
        (unsigned long)status.msg_qbytes, (long)status.msg_stime, (long)status.msg_rtime);
    TRY(msgctl(id, IPC_STAT, (struct msqid_ds*)manual_bad_pointer()));
    TRY(msgctl(id, IPC_SET, (struct msqid_ds*)manual_bad_pointer()));
    TRY(msgctl(id, 77, &status));
    TRY(msgctl(-1, IPC_STAT, &status));
    struct message m = {1, "hello"};
    TRY(msgsnd(id, &m, 6, 0));
    TRY(msgctl(id, IPC_STAT, &status));
    SAY("%lu %lu by me %d", (unsigned long)status.msg_qnum, (unsigned long)status.__msg_cbytes,
        status.msg_lspid == getpid());
    status.msg_qbytes = 10;
    status.msg_perm.mode = 0600;
    TRY(msgctl(id, IPC_SET, &status));
    TRY(msgsnd(id, &m, 6, IPC_NOWAIT));
    status.msg_qbytes = 0;
    TRY(msgctl(id, IPC_SET, &status));
    struct msginfo info;
    TRY(msgctl(0, IPC_INFO, (struct msqid_ds*)&info) >= 0);
    TRY(msgctl(0, MSG_INFO, (struct msqid_ds*)&info) >= 0);
    if (fork() == 0) {
        manual_become_nobody();
        TRY(msgctl(id, IPC_STAT, &status));
        TRY(msgctl(id, IPC_SET, &status));
        TRY(msgctl(id, IPC_RMID, NULL));
        TRY(msgsnd(id, &m, 6, IPC_NOWAIT));
        TRY(msgrcv(id, &m, 6, 0, IPC_NOWAIT));
        _exit(0);
    }
    wait(NULL);
    TRY(msgctl(id, IPC_RMID, NULL));
    TRY(msgctl(id, IPC_STAT, &status));
    TRY(msgsnd(id, &m, 1, 0));
    TRY(msgrcv(id, &m, 1, 0, 0));
}

static void messages(void) {
    int id = msgget(IPC_PRIVATE, 0600);
    struct message m = {0, "x"};
    TRY(msgsnd(id, &m, 1, 0));
    m.type = -1;
    TRY(msgsnd(id, &m, 1, 0));
    m.type = 1;
    TRY(msgsnd(id, &m, -1, 0));
    TRY(msgsnd(id, &m, 1 << 20, 0));
    TRY(msgsnd(id, manual_bad_pointer(), 1, 0));
    for (long type = 5; type >= 1; type--) {
        m.type = type;
        sprintf(m.text, "text %ld", type);
        TRY(msgsnd(id, &m, 7, 0));
    }
    m.type = 9;
    TRY(msgsnd(id, &m, 0, 0));
    TRY(msgrcv(id, &m, 64, 3, 0));
    SAY("%ld %s", m.type, m.text);
    TRY(msgrcv(id, &m, 64, -4, 0));  // the lowest of up to 4
    SAY("%ld %s", m.type, m.text);
    TRY(msgrcv(id, &m, 64, 5, MSG_EXCEPT));
    SAY("%ld %s", m.type, m.text);
    TRY(msgrcv(id, &m, 2, 0, 0));
    TRY(msgrcv(id, &m, 2, 0, MSG_NOERROR));
    SAY("%ld", m.type);
    TRY(msgrcv(id, &m, 64, 77, IPC_NOWAIT));
    TRY(msgrcv(id, &m, 64, 1, IPC_NOWAIT | MSG_COPY | MSG_EXCEPT));
    TRY(msgrcv(id, &m, 64, 0, MSG_COPY));
    memset(m.text, 0, sizeof m.text);
    TRY(msgrcv(id, &m, 64, 0, MSG_COPY | IPC_NOWAIT));
    SAY("%ld %s", m.type, m.text);
    TRY(msgrcv(id, &m, 64, 9, MSG_COPY | IPC_NOWAIT));
    TRY(msgrcv(id, &m, -1, 0, 0));
    TRY(msgrcv(id, manual_bad_pointer(), 64, 9, 0));
    TRY(msgrcv(id, &m, 64, 0, IPC_NOWAIT));
    TRY(msgrcv(id, &m, 64, 0, IPC_NOWAIT));
    msgctl(id, IPC_RMID, NULL);
}

static void on_alarm(int number) {}

static void waiting(void) {
    int id = msgget(IPC_PRIVATE, 0600);
    struct message m = {1, "x"};
    pid_t child = fork();
    if (child == 0) {
        ssize_t got = msgrcv(id, &m, 64, 2, 0);
        if (got != 3 || strcmp(m.text, "ab")) _exit(1);
        // EINVAL: it was gone before the child waited again.
        _exit(msgrcv(id, &m, 64, 2, 0) == -1 && (errno == EIDRM || errno == EINVAL) ? 5 : 6);
    }
    usleep(20000);
    msgsnd(id, &m, 2, 0);
    m = (struct message){2, "ab"};
    msgsnd(id, &m, 3, 0);
    usleep(20000);
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    ualarm(20000, 20000);           // again: the first may come before the call
    TRY(msgrcv(id, &m, 64, 3, 0));  // not restarted, whatever the flags
    ualarm(0, 0);
    TRY(msgctl(id, IPC_RMID, NULL));
    int status;
    waitpid(child, &status, 0);
    SAY("%#x", status);
}

int main(void) {
    manual_begin();
    manual_in_child("commands", commands);
    manual_in_child("messages", messages);
    manual_in_child("waiting", waiting);
    return guest_passed();
}
