// dlopen, dlsym, dlclose: constructors and destructors, symbols, TLS in the library, dladdr,
// errors.
#include <dlfcn.h>

#include "guest.h"

int main(void) {
    char path[4096];
    snprintf(path, sizeof path, "%s/libplugin.so", getenv("GUESTS"));
    for (int i = 0; i < 20; i++) {
        void* library = dlopen(path, i % 2 ? RTLD_NOW : RTLD_LAZY);
        if (!library) fprintf(stderr, "%s\n", dlerror());
        CHECK(library != NULL);
        int (*constructed)(void) = (int (*)(void))dlsym(library, "plugin_constructed");
        int (*add)(int, int) = (int (*)(int, int))dlsym(library, "plugin_add");
        int* (*local)(void) = (int* (*)(void))dlsym(library, "plugin_local");
        CHECK(constructed && add && local);
        CHECK_EQ(constructed(), 1);
        CHECK_EQ(add(i, 3), i + 3);
        CHECK_EQ(*local(), 99);
        *local() = i;
        CHECK_EQ(*local(), i);
        Dl_info info;
        CHECK(dladdr((void*)add, &info) != 0);
        CHECK(strcmp(info.dli_sname, "plugin_add") == 0);
        CHECK(dlsym(library, "plugin_absent") == NULL && dlerror() != NULL);
        void* again = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
        CHECK(again == library);
        CHECK_EQ(dlclose(again), 0);
        CHECK_EQ(dlclose(library), 0);
        CHECK(dlopen(path, RTLD_NOW | RTLD_NOLOAD) == NULL);
    }
    CHECK(dlopen("/absent/library.so", RTLD_NOW) == NULL);
    CHECK(dlsym(RTLD_DEFAULT, "printf") == (void*)printf);
    return guest_passed();
}
