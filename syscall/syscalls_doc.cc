// Writes docs/syscalls.md: `meson compile -C BUILD syscalls-doc`.
#include <cstdio>
#include <fstream>

#include "syscall/document.h"

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: %s FILE\n", argv[0]);
        return 2;
    }
    std::ofstream file(argv[1]);
    file << gpr::syscalls_markdown();
    file.close();
    if (!file) {
        std::fprintf(stderr, "%s: cannot write\n", argv[1]);
        return 1;
    }
    return 0;
}
