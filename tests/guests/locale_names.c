// Name services and locales: users, groups, hosts, services, iconv, wide output.
#include <grp.h>
#include <iconv.h>
#include <locale.h>
#include <netdb.h>
#include <pwd.h>
#include <wchar.h>

#include "guest.h"

int main(void) {
    CHECK(setlocale(LC_ALL, "C.UTF-8") != NULL);
    wchar_t wide[20];
    CHECK_EQ(mbstowcs(wide, "größe", 20), 5);
    CHECK_EQ(wide[2], 0xf6);
    iconv_t converter = iconv_open("UTF-16LE", "UTF-8");
    CHECK(converter != (iconv_t)-1);
    char in[] = "aü", out[10], *from = in, *to = out;
    size_t left = 3, room = sizeof out;
    CHECK_EQ(iconv(converter, &from, &left, &to, &room), 0);
    CHECK(to - out == 4 && memcmp(out, "a\0\xfc\0", 4) == 0);
    struct passwd* root = getpwnam("root");
    CHECK(root && root->pw_uid == 0);
    struct group* group = getgrgid(0);
    CHECK(group && strcmp(group->gr_name, "root") == 0);
    CHECK(getpwnam("nobody-of-this-name") == NULL);
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found;
    int by_name = getaddrinfo("localhost", "8080", &hints, &found);  // not every host knows it
    if (by_name == 0) freeaddrinfo(found);
    CHECK(getaddrinfo("127.0.0.1", NULL, &hints, &found) == 0);
    freeaddrinfo(found);
    printf("%s %ls %d\n", root->pw_name, wide, by_name);
    return guest_passed();
}
