#include "acceptor/worker/worker.h"

#include "monitor/paging/page_wire.h"
#include "transport/handshake.h"

namespace gpr::worker {

Worker::Worker(Loop& the_loop, Waits& the_waits, Link& the_link, Sandbox& the_sandbox,
               const Hello& peer, Fd stub_code, bool unlike_vdso)
    : loop(the_loop),
      waits(the_waits),
      link(the_link),
      sandbox(the_sandbox),
      self(static_cast<NodeId>(peer.node_id)),
      pager(self, loop, nullptr,
            [this](NodeId, bool bulk, const Message& message) {
                FrameBuilder frame;
                encode_pages(frame, message);
                link.send(frame, bulk ? Priority::bulk : Priority::urgent);
            }),
      metadata(loop),
      stopped(loop),
      next_object(static_cast<ObjectId>(self) << 27),
      starts(*this, std::move(stub_code)),
      kernel_pages(*this, peer.vdso, unlike_vdso),
      call_rules(*this, peer.calls),
      files(*this, PathRules(peer.paths, peer.root_links)) {}

RemoteProcess* Worker::find_process(pid_t pid) {
    auto it = processes.find(pid);
    return it == processes.end() ? nullptr : it->second.get();
}

RemoteThread* Worker::find_thread(pid_t pid, pid_t tid) {
    RemoteProcess* process = find_process(pid);
    if (!process) return nullptr;
    auto it = process->threads.find(tid);
    return it == process->threads.end() ? nullptr : it->second.get();
}

}  // namespace gpr::worker
