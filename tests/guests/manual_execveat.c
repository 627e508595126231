// execveat(2): where the program comes from, and every error that the page names.
#include <fcntl.h>
#include <sys/stat.h>

#include "manual.h"

#define EXEC(directory, path, flags) \
    syscall(SYS_execveat, directory, path, arguments, environment, flags)

static char* arguments[] = {(char*)"name", (char*)"child", NULL};
static char* environment[] = {(char*)"WORD=value", NULL};
static char self[4096];

static void by_path(void) { TRY(EXEC(AT_FDCWD, self, 0)); }
static void by_descriptor(void) {
    int fd = open(self, O_PATH);
    TRY(EXEC(fd, "", AT_EMPTY_PATH));
}
static void by_closing_descriptor(void) {
    int fd = open(self, O_RDONLY | O_CLOEXEC);
    TRY(EXEC(fd, "", AT_EMPTY_PATH));
}
static void in_directory(void) {
    char directory[4096];
    strcpy(directory, self);
    char* slash = strrchr(directory, '/');
    *slash = 0;
    int fd = open(directory, O_PATH | O_DIRECTORY);
    TRY(EXEC(fd, slash + 1, AT_SYMLINK_NOFOLLOW));
}
static void script_closed(void) {
    int fd = open("script", O_RDONLY | O_CLOEXEC);
    TRY(EXEC(fd, "", AT_EMPTY_PATH));  // the interpreter could not open it
}
static void script_open(void) {
    int fd = open("script", O_RDONLY);
    TRY(EXEC(fd, "", AT_EMPTY_PATH));
}
static void script_by_name(void) { TRY(EXEC(AT_FDCWD, "script", 0)); }
static void memory_file(void) {
    int fd = memfd_create("program", MFD_CLOEXEC);
    int from = open(self, O_RDONLY);
    char block[65536];
    for (ssize_t n; (n = read(from, block, sizeof block)) > 0;) CHECK_EQ(write(fd, block, n), n);
    TRY(EXEC(fd, "", AT_EMPTY_PATH));
}
static void no_arguments(void) { TRY(syscall(SYS_execveat, AT_FDCWD, self, NULL, NULL, 0)); }

static void errors(void) {
    TRY(EXEC(AT_FDCWD, "", 0));
    TRY(EXEC(AT_FDCWD, "", AT_EMPTY_PATH));
    TRY(EXEC(99, "x", 0));
    TRY(EXEC(99, "", AT_EMPTY_PATH));
    TRY(EXEC(AT_FDCWD, "script", 0x8));
    TRY(EXEC(AT_FDCWD, "link", AT_SYMLINK_NOFOLLOW));
    TRY(EXEC(AT_FDCWD, "loop", 0));
    TRY(EXEC(AT_FDCWD, "absent", 0));
    TRY(EXEC(AT_FDCWD, "script/below", 0));
    TRY(EXEC(open("script", O_RDONLY), "x", 0));
    TRY(EXEC(AT_FDCWD, "plain", 0));
    TRY(EXEC(AT_FDCWD, "garbage", 0));
    TRY(EXEC(AT_FDCWD, "empty", 0));
    TRY(EXEC(AT_FDCWD, "short_elf", 0));
    TRY(EXEC(AT_FDCWD, "no_interpreter", 0));
    TRY(EXEC(AT_FDCWD, "deep", 0));
    TRY(EXEC(AT_FDCWD, ".", 0));
    TRY(EXEC(AT_FDCWD, (char*)manual_bad_pointer(), 0));
    TRY(syscall(SYS_execveat, AT_FDCWD, "script", manual_bad_pointer(), environment, 0));
    char* bad[] = {(char*)manual_bad_pointer(), NULL};
    TRY(syscall(SYS_execveat, AT_FDCWD, "script", bad, environment, 0));
    TRY(syscall(SYS_execveat, AT_FDCWD, "script", arguments, bad, 0));
    static char name[300];
    memset(name, 'x', 299);
    TRY(EXEC(AT_FDCWD, name, 0));
    static char path[5000];
    for (int i = 0; i < 4998; i += 2) memcpy(path + i, "./", 2);
    TRY(EXEC(AT_FDCWD, path, 0));
    static char big[140000];
    memset(big, 'b', sizeof big - 1);
    char* too_big[] = {big, NULL};
    TRY(syscall(SYS_execveat, AT_FDCWD, self, too_big, environment, 0));
    TRY(syscall(SYS_execve, "absent", arguments, environment));
    int writable = open("busy", O_WRONLY);
    TRY(EXEC(AT_FDCWD, "busy", 0));
    close(writable);
    SAY("still here");
}

static void as_nobody(void) {
    manual_become_nobody();
    TRY(EXEC(AT_FDCWD, "private", 0));
    TRY(EXEC(AT_FDCWD, "closed/script", 0));
    TRY(EXEC(AT_FDCWD, "plain", 0));
}

static void file(const char* name, const char* text, mode_t mode) {
    int fd = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    CHECK(fd >= 0);
    CHECK_EQ(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    fchmod(fd, mode);
    close(fd);
}

int main(int argc, char** argv) {
    manual_begin();
    if (argc > 1 || argc == 0 || !strcmp(argv[0], "")) {
        char comm[64] = "";
        FILE* names = fopen("/proc/self/comm", "r");
        fgets(comm, sizeof comm, names);
        const char* word = getenv("WORD");
        SAY("executed: %d arguments, %s, WORD=%s, comm %s", argc, argc ? argv[0] : "none",
            word ? word : "none", !strncmp(comm, "manual", 6) ? "manual\n" : comm);
        return 3;
    }
    CHECK(realpath(argv[0], self) || readlink("/proc/self/exe", self, sizeof self) > 0);
    file("script", "#!/bin/sh\necho script $# ${0##*/} $WORD\nexit 4\n", 0755);
    file("busy", "#!/bin/sh\nexit 5\n", 0755);
    file("plain", "#!/bin/sh\n", 0644);
    file("private", "#!/bin/sh\n", 0700);
    file("garbage", "\x01\x02 not a program", 0755);
    file("empty", "", 0755);
    file("short_elf",
         "\x7f"
         "ELF\x02\x01\x01",
         0755);
    file("no_interpreter", "#!/does/not/exist\n", 0755);
    file("deep", "#!./deep1\n", 0755);
    for (int i = 1; i < 7; i++) {
        char name[8], next[16];
        sprintf(name, "deep%d", i);
        sprintf(next, "#!./deep%d\n", i + 1);
        file(name, next, 0755);
    }
    file("deep7", "#!/bin/sh\n", 0755);
    mkdir("closed", 0700);
    file("closed/script", "#!/bin/sh\n", 0755);
    symlink("script", "link");
    symlink("loop", "loop");
    manual_in_child("by path", by_path);
    manual_in_child("by descriptor", by_descriptor);
    manual_in_child("by closing descriptor", by_closing_descriptor);
    manual_in_child("in directory", in_directory);
    manual_in_child("script closed", script_closed);
    manual_in_child("script open", script_open);
    manual_in_child("script by name", script_by_name);
    manual_in_child("memory file", memory_file);
    manual_in_child("no arguments", no_arguments);
    manual_in_child("errors", errors);
    manual_in_child("as nobody", as_nobody);
    return guest_passed();
}
