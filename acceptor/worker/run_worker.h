// Runs a session in the process that an acceptor has made for it, until the session is over.
#pragma once

#include <optional>

#include "acceptor/cache/content_cache.h"
#include "transport/handshake.h"

namespace gpr {

class Sandbox;
class SharedTally;

struct WorkerOptions {
    bool unlike_vdso = false;      // never use this kernel's vdso in place of home's
    bool drains = false;           // at the first SIGTERM home is asked to leave
    bool delegates = true;         // answer for files of home that it delegates
    bool remembers = true;         // repeat what home has told of paths
    bool moves_breaks = true;      // answer brk(2) where home lets it
    SharedTally* tally = nullptr;  // what the daemon shows of the session, if anybody looks
    std::optional<ContentCache> contents = {};  // none: contents of files are not kept
};

// The WorkerMain of a real session.
int run_worker(EstablishedInitiator established, Sandbox& sandbox, WorkerOptions options = {});

}  // namespace gpr
