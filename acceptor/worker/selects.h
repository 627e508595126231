// select() and pselect6() on descriptors of both nodes. The acceptor's own numbers do not fit into
// an fd_set, but names of its files do (monitor/home/fd_names.h). The shadow waits at home for
// home's descriptors, by ppoll, and we watch the others; the first that is ready ends both waits.
#pragma once

#include <cstdint>
#include <memory>

#include "acceptor/worker/part.h"
#include "syscall/marshal.h"

namespace gpr::worker {

class Selects {
public:
    explicit Selects(Worker& worker) : worker_(worker) {}

    Task<void> select_call(RemoteProcess& process, RemoteThread& thread, Notification n);

private:
    class OwnMemory;
    struct Select;
    Task<int64_t> call_home(RemoteProcess& process, RemoteThread& thread, uint32_t number,
                            SyscallArguments args, OwnMemory& memory, uint32_t wait);
    Task<std::unique_ptr<Select>> read_select(RemoteProcess& process, Notification n);
    Task<int64_t> wait_for_others(RemoteProcess& process, RemoteThread& thread, Select& select,
                                  bool waits, bool& in_vain);
    Task<int64_t> make_select(RemoteProcess& process, RemoteThread& thread, Notification n,
                              Select& select);

    Worker& worker_;
};

}  // namespace gpr::worker
