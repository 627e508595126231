// Code on a writable page changes itself between calls, by the same and by another thread.
#include <pthread.h>
#include <sys/mman.h>

#include "guest.h"

static unsigned char* code;
typedef int (*Function)(void);

static void* patch(void* value) {
    int number = (int)(intptr_t)value;
    memcpy(code + 1, &number, 4);
    return NULL;
}

int main(void) {
    code = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED) SKIP("writable and executable memory is not allowed");
    code += 4094;  // the instruction lies on two pages
    code[0] = 0xb8;
    code[5] = 0xc3;
    for (int i = 0; i < 500; i++) {
        patch((void*)(intptr_t)i);
        CHECK_EQ(((Function)(void*)code)(), i);
    }
    for (int i = 0; i < 50; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, patch, (void*)(intptr_t)(i * 3));
        pthread_join(thread, NULL);
        CHECK_EQ(((Function)(void*)code)(), i * 3);
    }
    return guest_passed();
}
