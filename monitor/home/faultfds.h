// Emulates the userfaultfds that the program itself makes: monitor/paging/program_faultfd.h.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>

#include "base/address.h"
#include "monitor/home/part.h"

struct uffdio_api;
struct uffdio_copy;
struct uffdio_zeropage;

namespace gpr {
struct ProgramFaultfd;
}  // namespace gpr

namespace gpr::home {

class Faultfds {
public:
    explicit Faultfds(Home& home) : home_(home) {}

    Task<int64_t> make_faultfd(HomeProcess& process, StubThread& stub, uint64_t flags);
    std::shared_ptr<ProgramFaultfd> faultfd_of(pid_t pid, int fd);
    [[nodiscard]] bool has_any(pid_t pid) const;
    Task<void> make_faultfd_here(HomeProcess& process, HomeThread& thread, Notification n);
    Task<void> ioctl_here(HomeProcess& process, HomeThread& thread, Notification n,
                          std::shared_ptr<ProgramFaultfd> held);
    Task<int64_t> ioctl_faultfd(HomeProcess& process, std::shared_ptr<ProgramFaultfd> held,
                                uint32_t command, Address argument);
    void on_unfilled(pid_t pid, Address at, bool write, pid_t tid);

private:
    int64_t agree(ProgramFaultfd& faultfd, uffdio_api& api);
    Task<int64_t> let_fill(ProgramFaultfd& faultfd, Range range, uint64_t mode);
    Task<int64_t> stop_filling(ProgramFaultfd& faultfd, Range range);
    Task<int64_t> copy_pages(HomeProcess& process, ProgramFaultfd& faultfd, uffdio_copy& copy);
    Task<int64_t> zero_pages(ProgramFaultfd& faultfd, uffdio_zeropage& zero);
    void wake_filled(const ProgramFaultfd& faultfd, Range range);
    void tell_faults(const std::shared_ptr<ProgramFaultfd>& faultfd);
    Task<void> on_faultfd_closed(uint64_t inode);

    Home& home_;
    std::map<uint64_t, std::shared_ptr<ProgramFaultfd>> faultfds_;  // by the socket's inode
};

}  // namespace gpr::home
