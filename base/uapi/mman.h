// <sys/mman.h>, and values that older C libraries lack.
#pragma once

#include <sys/mman.h>

#ifndef MREMAP_DONTUNMAP  // 5.7
#define MREMAP_DONTUNMAP 4
#endif
#ifndef MADV_POPULATE_READ  // 5.14
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_DONTNEED_LOCKED  // 5.18
#define MADV_DONTNEED_LOCKED 24
#endif
#ifndef MADV_COLLAPSE  // 6.1
#define MADV_COLLAPSE 25
#endif
#ifndef MADV_GUARD_INSTALL  // 6.13
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE 103
#endif
