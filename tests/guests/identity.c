// uname, gethostname, user and group ids, capabilities of files, sysconf, priority.
#include <grp.h>
#include <pwd.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include "guest.h"

int main(void) {
    struct utsname name;
    char host[100];
    CHECK_EQ(uname(&name), 0);
    CHECK_EQ(gethostname(host, sizeof host), 0);
    CHECK(strcmp(host, name.nodename) == 0);
    printf("%s %s %s %s\n", name.sysname, name.nodename, name.release, name.machine);
    printf("uid %d %d gid %d %d\n", getuid(), geteuid(), getgid(), getegid());
    gid_t groups[64];
    int count = getgroups(64, groups);
    CHECK(count >= 0);
    for (int i = 0; i < count; i++) printf("group %d\n", groups[i]);
    struct passwd* user = getpwuid(getuid());
    CHECK(user != NULL);
    printf("%s %s\n", user->pw_name, user->pw_dir);
    printf("page %ld\n", sysconf(_SC_PAGESIZE));
    CHECK(sysconf(_SC_NPROCESSORS_ONLN) >= 1);
    struct sysinfo info;
    CHECK_EQ(sysinfo(&info), 0);
    CHECK(info.totalram > 0);
    printf("nice %d\n", getpriority(PRIO_PROCESS, 0));
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    printf("files %ld %ld\n", (long)limit.rlim_cur, (long)limit.rlim_max);
    CHECK_EQ(getrlimit(RLIMIT_STACK, &limit), 0);
    printf("stack %ld\n", (long)limit.rlim_cur);
    return guest_passed();
}
