// Sends frames by an AF_XDP socket out of memory that the kernel has pinned, while another thread
// uses the rest of the same pages. xdp_send INTERFACE-NUMBER FRAMES; tests/scenarios/xdp receives.
#include <errno.h>
#include <linux/if_xdp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SOL_XDP
#define SOL_XDP 283
#endif

enum { PAGE = 4096, HALF = PAGE / 2, PAGES = 16, RING = 32, FRAME = 1000, HEADER = 14 };

static char* area;  // in each page the first half is a frame, the second the neighbour's
static volatile int done;

static void need(int good, const char* what) {
    if (good) return;
    fprintf(stderr, "%s: errno %d %s\n", what, errno, strerror(errno));
    exit(1);
}

static void* use_second_halves(void* unused) {
    (void)unused;
    uint64_t count = 0;
    while (!done || count < 50) {
        for (int p = 0; p < PAGES; p++) {
            volatile uint64_t* words = (volatile uint64_t*)(area + p * PAGE + HALF);
            for (int i = 0; i < HALF / 8; i += 64) {
                need(words[i] == count, "a word of the neighbour");
                words[i] = count + 1;
            }
        }
        count++;
    }
    return NULL;
}

struct ring {
    volatile uint32_t* producer;
    volatile uint32_t* consumer;
    char* entries;
};

static struct ring map_ring(int s, uint64_t at, const struct xdp_ring_offset* offset,
                            size_t entry) {
    char* base = mmap(NULL, offset->desc + RING * entry, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_POPULATE, s, (off_t)at);
    need(base != MAP_FAILED, "mmap");
    return (struct ring){(volatile uint32_t*)(base + offset->producer),
                         (volatile uint32_t*)(base + offset->consumer), base + offset->desc};
}

static void fill(int page, unsigned number) {
    unsigned char* frame = (unsigned char*)area + page * PAGE;
    memset(frame, 0xff, 6);
    memcpy(frame + 6, "\x02gprxd", 6);
    frame[12] = 0x88;  // an ethertype for experiments
    frame[13] = 0xb5;
    memcpy(frame + HEADER, &number, sizeof number);
    memset(frame + HEADER + sizeof number, (int)(number * 31 + 7) & 0xff,
           FRAME - HEADER - sizeof number);
}

int main(int count, char** words) {
    if (count < 3) return 2;
    unsigned frames = (unsigned)atoi(words[2]);
    int s = socket(AF_XDP, SOCK_RAW, 0);
    need(s >= 0, "socket");
    area = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(area != MAP_FAILED, "mmap");
    struct xdp_umem_reg umem = {.addr = (uint64_t)area, .len = PAGES * PAGE, .chunk_size = HALF};
    need(setsockopt(s, SOL_XDP, XDP_UMEM_REG, &umem, sizeof umem) == 0, "XDP_UMEM_REG");
    int size = RING;
    need(setsockopt(s, SOL_XDP, XDP_UMEM_FILL_RING, &size, sizeof size) == 0, "FILL_RING");
    need(setsockopt(s, SOL_XDP, XDP_UMEM_COMPLETION_RING, &size, sizeof size) == 0, "COMPLETION");
    need(setsockopt(s, SOL_XDP, XDP_TX_RING, &size, sizeof size) == 0, "TX_RING");
    struct xdp_mmap_offsets offsets;
    socklen_t length = sizeof offsets;
    need(getsockopt(s, SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &length) == 0, "XDP_MMAP_OFFSETS");
    struct ring tx = map_ring(s, XDP_PGOFF_TX_RING, &offsets.tx, sizeof(struct xdp_desc));
    struct ring ended = map_ring(s, XDP_UMEM_PGOFF_COMPLETION_RING, &offsets.cr, sizeof(uint64_t));
    struct sockaddr_xdp to = {
        .sxdp_family = AF_XDP, .sxdp_flags = XDP_COPY, .sxdp_ifindex = (uint32_t)atoi(words[1])};
    need(bind(s, (struct sockaddr*)&to, sizeof to) == 0, "bind");
    pthread_t neighbour;
    need(pthread_create(&neighbour, NULL, use_second_halves, NULL) == 0, "pthread_create");
    for (unsigned n = 0; n < frames;) {
        unsigned batch = frames - n < PAGES ? frames - n : PAGES;
        for (unsigned i = 0; i < batch; i++) {
            fill((int)i, n + i);
            struct xdp_desc* entry = (struct xdp_desc*)tx.entries + (n + i) % RING;
            *entry = (struct xdp_desc){.addr = (uint64_t)i * PAGE, .len = FRAME};
        }
        __atomic_store_n(tx.producer, n + batch, __ATOMIC_RELEASE);
        n += batch;
        // The ring's memory says when a frame has left, and may be used again.
        while (__atomic_load_n(ended.producer, __ATOMIC_ACQUIRE) != n) {
            ssize_t sent = sendto(s, NULL, 0, MSG_DONTWAIT, NULL, 0);
            need(sent >= 0 || errno == EAGAIN || errno == EBUSY || errno == ENOBUFS, "sendto");
        }
        __atomic_store_n(ended.consumer, n, __ATOMIC_RELEASE);
    }
    done = 1;
    pthread_join(neighbour, NULL);
    printf("%u frames were sent, and the neighbour kept its words\n", frames);
    return 0;
}
