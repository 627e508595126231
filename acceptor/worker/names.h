// Names: numbers of home that stand for files here (monitor/home/fd_names.h). Home says which they
// are. The files get the same numbers in the process's descriptor table here, where other numbers
// of home have an unusable file, so that the kernel can make the calls as the program wrote them.
// Has the files.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "acceptor/worker/part.h"
#include "base/fd.h"
#include "transport/wire.h"

namespace gpr::worker {

class Names {
public:
    explicit Names(Worker& worker) : worker_(worker) {}

    uint64_t add_file(Fd file);
    void note_names(RemoteProcess& process, capnp::List<wire::FdName>::Reader names);
    Task<void> on_fd_names(Frame frame);
    void on_files_gone(wire::FilesGone::Reader gone);
    Task<void> bring_names(RemoteProcess& process);
    Task<bool> named_call(RemoteProcess& process, RemoteThread& thread, Notification n);

private:
    static void note_name(RemoteProcess& process, int number, uint64_t file);
    static void forget_names(RemoteProcess& process, uint64_t first, uint64_t last);
    Task<void> change_names(RemoteProcess& process, RemoteThread& thread, Notification n,
                            std::function<void(int64_t)> note, uint64_t file = 0);
    Task<void> name_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<void> copy_name_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<void> close_range_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<bool> changing_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<bool> is_beside_its_fd(RemoteProcess& process, Notification n, int path_argument);

    Worker& worker_;
    std::map<uint64_t, Fd> files_;  // those that home has names for
    uint64_t last_file_ = 0;
};

}  // namespace gpr::worker
