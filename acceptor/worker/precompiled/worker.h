// Precompiled for the worker: everything that belongs to a session at the acceptor.
#ifndef GPR_WORKER_PCH_H
#define GPR_WORKER_PCH_H

#include "acceptor/worker/worker.h"
#include "transport/precompiled/messages.h"

#endif
