// argv, argv[0], environment, cwd, auxv, program name and large environments arrive unchanged.
#include <elf.h>
#include <sys/auxv.h>

#include "guest.h"

extern char** environ;

int main(int argc, char** argv) {
    printf("argc %d\n", argc);
    for (int i = 1; i < argc; i++) printf("argument %d <%s>\n", i, argv[i]);
    CHECK(strcmp(program_invocation_short_name, "environment") == 0);
    CHECK(getenv("GUEST_WORD") && strcmp(getenv("GUEST_WORD"), "a b\tc=d") == 0);
    CHECK_EQ(strlen(getenv("GUEST_LONG")), 2000);
    for (char** entry = environ; *entry; entry++)
        if (strncmp(*entry, "GPR_", 4) == 0 && strncmp(*entry, "GPR_TEST_", 9) != 0)
            printf("%s\n", *entry);
    CHECK_EQ(setenv("NEW", "value", 1), 0);
    CHECK_EQ(system("test \"$NEW\" = value"), 0);
    CHECK_EQ(getauxval(AT_PAGESZ), 4096);
    CHECK_EQ(getauxval(AT_UID), getuid());
    CHECK_EQ(getauxval(AT_SECURE), 0);
    CHECK(getauxval(AT_RANDOM) != 0 && getauxval(AT_PHDR) != 0);
    CHECK(strcmp((char*)getauxval(AT_EXECFN), argv[0]) == 0);
    CHECK(strcmp((char*)getauxval(AT_PLATFORM), "x86_64") == 0);
    return guest_passed();
}
