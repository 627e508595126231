// The least a program does: one line on stdout, one on stderr, what stdin says, and a status.
#include "guest.h"

int main(int argc, char** argv) {
    char line[100];
    printf("hello\n");
    fprintf(stderr, "to stderr\n");
    while (fgets(line, sizeof line, stdin)) printf("stdin: %s", line);
    guest_passed();
    return argc > 1 ? atoi(argv[1]) : 0;
}
