// Every thread finds the robust list that its C library has registered, wherever it asks.
#include <pthread.h>
#include <sys/syscall.h>

#include "guest.h"

enum { threads = 4, looks = 200 };

static void* look(void* unused) {
    void *first = NULL, *head = NULL;
    size_t length = 0;
    CHECK_EQ(syscall(SYS_get_robust_list, 0, &first, &length), 0);
    CHECK(first != NULL);
    for (int i = 0; i < looks; i++) {
        CHECK_EQ(syscall(SYS_get_robust_list, 0, &head, &length), 0);
        CHECK(head == first && length == 24);
    }
    return unused;
}

int main(void) {
    pthread_t ids[threads];
    for (int i = 0; i < threads; i++) CHECK_EQ(pthread_create(&ids[i], NULL, look, NULL), 0);
    for (int i = 0; i < threads; i++) CHECK_EQ(pthread_join(ids[i], NULL), 0);
    look(NULL);
    return guest_passed();
}
