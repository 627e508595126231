// exec with 1,000 arguments of 100 bytes and E2BIG with too many; argv[0] free to choose.
#include <sys/wait.h>

#include "guest.h"

enum { COUNT = 1000 };

int main(int argc, char** argv) {
    if (strcmp(argv[0], "chosen name") == 0) {
        CHECK_EQ(argc, COUNT);
        for (int i = 1; i < argc; i++) CHECK(strlen(argv[i]) == 100 && atoi(argv[i]) == i);
        return guest_passed();
    }
    static char text[COUNT][101];
    static char* arguments[COUNT + 1] = {"chosen name"};
    for (int i = 1; i < COUNT; i++) {
        memset(text[i], 'x', 100);
        int size = snprintf(text[i], 100, "%d", i);
        text[i][size] = 'y';
        arguments[i] = text[i];
    }
    size_t huge_size = 3 << 20;
    char* huge = malloc(huge_size);
    memset(huge, 'h', huge_size);
    huge[huge_size - 1] = 0;
    char* too_big[] = {argv[0], huge, NULL};
    CHECK_ERRNO(execv(argv[0], too_big), E2BIG);
    CHECK_ERRNO(execv("/dev/null", arguments), EACCES);
    CHECK_ERRNO(execv("/etc/passwd/x", arguments), ENOTDIR);
    execv(argv[0], arguments);
    return 1;
}
