// A thread ends with a robust list that does not lead back to its head: of its entries, and of the
// lock that it was about to take, each is handed on.
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "guest.h"

enum { ENTRIES = 5, THREADS = 200 };

struct entry {
    struct robust_list list;
    _Atomic uint32_t lock;
};

static struct entry entries[ENTRIES];
static struct robust_list_head head;

static void* end_with_list(void* nothing) {
    (void)nothing;
    const uint32_t tid = (uint32_t)syscall(SYS_gettid);
    for (int i = 0; i < ENTRIES; i++) {
        entries[i].list.next = &entries[i + 1].list;
        atomic_store(&entries[i].lock, tid);
    }
    entries[ENTRIES - 2].list.next = &entries[1].list;  // the last is only about to be taken
    head.list.next = &entries[0].list;
    head.futex_offset = offsetof(struct entry, lock);
    head.list_op_pending = &entries[ENTRIES - 1].list;
    CHECK_EQ(syscall(SYS_set_robust_list, &head, sizeof head), 0);
    return NULL;
}

int main(void) {
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, end_with_list, NULL), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        for (int k = 0; k < ENTRIES; k++) CHECK_EQ(atomic_load(&entries[k].lock), FUTEX_OWNER_DIED);
    }
    return guest_passed();
}
