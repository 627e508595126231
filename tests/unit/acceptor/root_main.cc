// For tests that need root: without it the program says so and counts as skipped.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <linux/capability.h>

#include <cstdio>

#include "acceptor/box/privileges.h"

int main(int argc, char** argv) {
    if (!gpr::has_capability(CAP_SYS_ADMIN)) {
        printf("skipped: making sandboxes needs root\n");
        return 77;
    }
    doctest::Context context(argc, argv);
    return context.run();
}
