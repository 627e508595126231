// atexit handlers run in reverse, also those added by a handler; stdio is flushed; status 17.
#include "guest.h"

static void third(void) { printf("third, the last one; passed\n"); }
static void second(void) {
    printf("second\n");
    atexit(third);
}
static void first(int status, void* argument) { printf("first %d %s\n", status, (char*)argument); }
static void __attribute__((constructor)) before_main(void) { printf("constructor\n"); }

int main(int argc, char** argv) {
    CHECK_EQ(atexit(second), 0);
    CHECK_EQ(on_exit(first, "argument"), 0);
    printf("main %d\n", argc);
    exit(17);
}
