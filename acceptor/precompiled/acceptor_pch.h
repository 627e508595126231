// Compiled once for all files of this folder: most of them need it, and it takes longer than they
// do.
#ifndef GPR_ACCEPTOR_PCH_H
#define GPR_ACCEPTOR_PCH_H

#include "acceptor/worker/worker.h"

#endif
