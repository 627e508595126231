// A netlink route socket lists the loopback interface; if_nametoindex; abstract unix names.
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "guest.h"

int main(void) {
    CHECK_EQ(if_nametoindex("lo"), 1);
    int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    struct {
        struct nlmsghdr header;
        struct rtgenmsg message;
    } request = {{sizeof request, RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 1, 0}, {AF_UNSPEC}};
    CHECK_EQ(send(fd, &request, sizeof request, 0), sizeof request);
    char buffer[32768];
    int found = 0, done = 0;
    while (!done) {
        ssize_t size = recv(fd, buffer, sizeof buffer, 0);
        CHECK(size > 0);
        for (struct nlmsghdr* at = (struct nlmsghdr*)buffer; NLMSG_OK(at, (unsigned)size);
             at = NLMSG_NEXT(at, size)) {
            done |= at->nlmsg_type == NLMSG_DONE;
            found |= at->nlmsg_type == RTM_NEWLINK &&
                     ((struct ifinfomsg*)NLMSG_DATA(at))->ifi_index == 1;
        }
    }
    CHECK(found);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int size = snprintf(address.sun_path + 1, 50, "gpr-guest-%d", getpid());
    socklen_t length = (socklen_t)(sizeof(sa_family_t) + 1 + (unsigned)size);
    int server = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK_EQ(bind(server, (struct sockaddr*)&address, length), 0);
    CHECK_EQ(listen(server, 1), 0);
    CHECK_EQ(connect(client, (struct sockaddr*)&address, length), 0);
    return guest_passed();
}
