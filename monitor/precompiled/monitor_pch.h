// Compiled once for all files of this folder: most of them need it, and it takes longer than they
// do.
#ifndef GPR_MONITOR_PCH_H
#define GPR_MONITOR_PCH_H

#include "monitor/home/session.h"

#endif
