// sendmmsg(2) and recvmmsg: counts, errors in the middle, flags, timeouts.
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "manual.h"

static void counts(void) {
    int pair[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
    char text[4][8] = {"one", "two", "three", "four"}, in[4][8] = {""};
    struct iovec out[4], into[4];
    struct mmsghdr messages[4], received[4];
    memset(messages, 0, sizeof messages);
    memset(received, 0, sizeof received);
    for (int i = 0; i < 4; i++) {
        out[i] = (struct iovec){text[i], strlen(text[i])};
        into[i] = (struct iovec){in[i], 4};
        messages[i].msg_hdr.msg_iov = &out[i];
        messages[i].msg_hdr.msg_iovlen = 1;
        received[i].msg_hdr.msg_iov = &into[i];
        received[i].msg_hdr.msg_iovlen = 1;
    }
    TRY(sendmmsg(pair[0], messages, 4, 0));
    SAY("%u %u %u %u", messages[0].msg_len, messages[1].msg_len, messages[2].msg_len,
        messages[3].msg_len);
    TRY(recvmmsg(pair[1], received, 2, 0, NULL));
    SAY("%u %u %s %s", received[0].msg_len, received[1].msg_len, in[0], in[1]);
    TRY(recvmmsg(pair[1], received, 4, MSG_DONTWAIT | MSG_TRUNC, NULL));
    SAY("%u %#x %u %.4s %.4s", received[0].msg_len, received[0].msg_hdr.msg_flags,
        received[1].msg_len, in[0], in[1]);
    TRY(recvmmsg(pair[1], received, 4, MSG_DONTWAIT, NULL));
    struct timespec soon = {0, 10000000}, bad = {0, -1};
    TRY(recvmmsg(pair[1], received, 4, MSG_DONTWAIT, &bad));
    TRY(recvmmsg(pair[1], received, 4, MSG_DONTWAIT, (struct timespec*)manual_bad_pointer()));
    TRY(sendmmsg(pair[0], messages, 1, 0));
    TRY(recvmmsg(pair[1], received, 4, MSG_WAITFORONE, NULL));
    TRY(sendmmsg(pair[0], messages, 1, 0));
    TRY(recvmmsg(pair[1], received, 1, 0, &soon));
    TRY(sendmmsg(pair[0], messages, 0, 0));
    TRY(recvmmsg(pair[1], received, 0, MSG_DONTWAIT, NULL));
    TRY(sendmmsg(pair[0], (struct mmsghdr*)manual_bad_pointer(), 1, 0));
    TRY(sendmmsg(-1, messages, 1, 0));
    TRY(sendmmsg(0, messages, 1, 0) == -1 && (errno == ENOTSOCK || errno == EBADF));
    // An error after the first is not told, only the count.
    out[2].iov_base = manual_bad_pointer();
    TRY(sendmmsg(pair[0], messages, 4, 0));
    TRY(recvmmsg(pair[1], received, 4, MSG_DONTWAIT, NULL));
    TRY(sendmmsg(pair[0], messages + 2, 2, 0));
    out[2].iov_base = text[2];
    messages[0].msg_hdr.msg_iovlen = 2000;
    TRY(sendmmsg(pair[0], messages, 2, 0));
    messages[0].msg_hdr.msg_iovlen = 1;
    close(pair[1]);
    signal(SIGPIPE, SIG_IGN);
    TRY(sendmmsg(pair[0], messages, 2, 0));
    // The array ends where memory ends.
    CHECK_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
    struct mmsghdr* last = (struct mmsghdr*)manual_page_end(2 * sizeof *last);
    memcpy(last, messages, 2 * sizeof *last);
    TRY(sendmmsg(pair[0], last, 3, 0));
    TRY(recvmmsg(pair[1], received, 4, MSG_DONTWAIT, NULL));
}

static void too_many(void) {
    int pair[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
    static struct mmsghdr many[2000];
    struct iovec nothing = {NULL, 0};
    for (int i = 0; i < 2000; i++) many[i].msg_hdr.msg_iov = &nothing;
    fcntl(pair[0], F_SETFL, O_NONBLOCK);
    int sent = sendmmsg(pair[0], many, 2000, 0);
    SAY("at most 1024: %d", sent >= 1 && sent <= 1024);
    int got = 0;
    for (int n; (n = recvmmsg(pair[1], many, 2000, MSG_DONTWAIT, NULL)) > 0;) got += n;
    SAY("all of them: %d", got == sent);
}

static void with_control(void) {
    int pair[2], fds[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    CHECK_EQ(pipe(fds), 0);
    char control[2][CMSG_SPACE(sizeof(int))], byte[2] = {'a', 'b'};
    struct iovec data[2] = {{&byte[0], 1}, {&byte[1], 1}};
    struct mmsghdr messages[2];
    memset(messages, 0, sizeof messages);
    memset(control, 0, sizeof control);
    for (int i = 0; i < 2; i++) {
        struct msghdr* header = &messages[i].msg_hdr;
        header->msg_iov = &data[i];
        header->msg_iovlen = 1;
        header->msg_control = control[i];
        header->msg_controllen = sizeof control[i];
        struct cmsghdr* c = CMSG_FIRSTHDR(header);
        *c = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(c), &fds[1 - i], sizeof(int));
    }
    TRY(sendmmsg(pair[0], messages, 2, 0));
    memset(control, 0, sizeof control);
    TRY(recvmmsg(pair[1], messages, 2, MSG_CMSG_CLOEXEC, NULL));
    int received[2];
    for (int i = 0; i < 2; i++) {
        SAY("%u %#x %zu", messages[i].msg_len, messages[i].msg_hdr.msg_flags,
            (size_t)messages[i].msg_hdr.msg_controllen);
        memcpy(&received[i], CMSG_DATA((struct cmsghdr*)control[i]), sizeof(int));
        TRY(fcntl(received[i], F_GETFD));
    }
    TRY(write(received[0], "over", 4));
    char text[8] = "";
    TRY(read(received[1], text, 8));
    SAY("%s", text);
}

static void on_alarm(int number) {}
static void interrupted(void) {
    int socket_fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in any = {.sin_family = AF_INET};
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK_EQ(bind(socket_fd, (struct sockaddr*)&any, sizeof any), 0);
    char byte;
    struct iovec into = {&byte, 1};
    struct mmsghdr message = {{.msg_iov = &into, .msg_iovlen = 1}, 0};
    struct sigaction action = {.sa_handler = on_alarm};
    sigaction(SIGALRM, &action, NULL);
    ualarm(20000, 20000);  // again: the first may come before the call
    TRY(recvmmsg(socket_fd, &message, 1, 0, NULL));
    ualarm(0, 0);
    struct timeval limit = {0, 20000};
    TRY(setsockopt(socket_fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
    TRY(recvmmsg(socket_fd, &message, 1, 0, NULL));
}

int main(void) {
    manual_begin();
    manual_in_child("counts", counts);
    manual_in_child("too many", too_many);
    manual_in_child("with control", with_control);
    manual_in_child("interrupted", interrupted);
    return guest_passed();
}
