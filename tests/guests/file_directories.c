// mkdir, readdir of 1000 files, seekdir, rename, unlink, rmdir.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "guest.h"

enum { FILES = 1000 };

static int count_entries(const char* path, char* seen) {
    DIR* dir = opendir(path);
    CHECK(dir != NULL);
    int count = 0;
    for (struct dirent* entry; (entry = readdir(dir)) != NULL;) {
        int number;
        if (sscanf(entry->d_name, "file-with-a-longer-name-%d", &number) != 1) continue;
        CHECK(number >= 0 && number < FILES && !seen[number]);
        seen[number] = 1;
        count++;
    }
    CHECK_EQ(closedir(dir), 0);
    return count;
}

int main(void) {
    char name[100], other[100], seen[FILES] = {0};
    CHECK_EQ(mkdir("folder", 0755), 0);
    CHECK_ERRNO(mkdir("folder", 0755), EEXIST);
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "folder/file-with-a-longer-name-%d", i);
        int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600);
        CHECK(fd >= 0);
        close(fd);
    }
    CHECK_EQ(count_entries("folder", seen), FILES);
    CHECK_ERRNO(rmdir("folder"), ENOTEMPTY);
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "folder/file-with-a-longer-name-%d", i);
        snprintf(other, sizeof other, "moved-%d", i);
        if (i % 10 == 0)
            CHECK_EQ(rename(name, other), 0);
        else
            CHECK_EQ(unlink(name), 0);
    }
    CHECK_EQ(rmdir("folder"), 0);
    CHECK_ERRNO(open("folder", O_RDONLY), ENOENT);
    return guest_passed();
}
