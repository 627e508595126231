// The library of dlopen_library.
#include <stdio.h>

static int constructed;
static __thread int local = 99;

static void __attribute__((constructor)) on_load(void) { constructed++; }
static void __attribute__((destructor)) on_unload(void) { printf("plugin unloaded\n"); }

int plugin_constructed(void) { return constructed; }
int plugin_add(int a, int b) { return a + b; }
int* plugin_local(void) { return &local; }
