#include "monitor/home/home.h"

#include <utility>

#include "monitor/paging/page_wire.h"

namespace gpr::home {

Home::Home(Loop& the_loop, Waits& the_waits, Link& link, const ExecOptions& the_options,
           SessionOutputs& the_outputs, unsigned fd_base, Fd stub_code)
    : loop(the_loop),
      waits(the_waits),
      options(the_options),
      outputs(the_outputs),
      policy(options.rules),
      has_gravity(options.gravity && policy.has_gravity()),
      rule_use(options.rules),
      pager(directory_node, loop, &directory,
            [this](NodeId, bool bulk, const Message& message) {
                FrameBuilder frame;
                encode_pages(frame, message);
                acceptor.link.send(frame, bulk ? Priority::bulk : Priority::urgent);
            }),
      acceptor(loop, link, fd_base),
      metadata(loop),
      remote_changed(loop),
      stub_entry(*this, std::move(stub_code)) {
    if (policy.chaos_seed() != 0) {
        chaos = std::make_unique<Chaos>(policy.chaos_seed(), directory_node);
    }
}

HomeThread* Home::find_thread(pid_t pid, pid_t tid) {
    auto it = threads.find(tid);
    return it != threads.end() && it->second->process->pid == pid ? it->second.get() : nullptr;
}

HomeProcess* Home::find_process(pid_t pid) {
    auto it = processes.find(pid);
    return it == processes.end() ? nullptr : it->second.get();
}

}  // namespace gpr::home
