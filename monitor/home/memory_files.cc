#include "monitor/home/memory_files.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <climits>
#include <optional>

#include "monitor/home/home.h"
#include "monitor/home/memory_gate.h"
#include "monitor/home/proc_files.h"
#include "monitor/node/proc_file.h"
#include "monitor/tracee/process_stat.h"
#include "syscall/table.h"

namespace gpr::home {

// The stub must be locked.
Task<void> MemoryFiles::note_opened(HomeProcess& process, StubThread& stub, int fd) {
    auto file = proc_file_of(process.pid, fd);
    if (!file) co_return;
    if (file->name == "mem") {
        in_use_ = true;
    } else {
        co_await home_.proc_files.show_process(process, stub, fd, *file);
    }
}

Task<void> MemoryFiles::bring_for_memory_file(HomeProcess& process, uint32_t number,
                                              SyscallArguments args) {
    const Transfer& use = details_of(number).transfer;
    int fd = static_cast<int>(args[0]);
    auto file = use.reads || use.writes ? proc_file_of(process.pid, fd) : std::nullopt;
    HomeProcess* target = file && file->name == "mem" ? home_.find_process(file->process) : nullptr;
    if (!target || !target->fragment) co_return;
    std::shared_ptr<Fragment> fragment = target->fragment, own = process.fragment;
    uint64_t size = args[2];
    if (use.vector) {
        std::vector<iovec> parts(std::min<uint64_t>(args[2], IOV_MAX));
        Address at{args[1]};
        bool readable =
            co_await home_.pager.memory.read(*own, at, std::as_writable_bytes(std::span(parts)));
        if (!readable) co_return;
        size = 0;
        for (const iovec& part : parts) size += std::min<uint64_t>(part.iov_len, INT_MAX);
    }
    const std::string offset = descriptor_info(process.pid, fd, "pos:");
    Address from{use.at_offset ? args[3] : std::strtoull(offset.c_str(), nullptr, 10)};
    Address end = from + std::min<uint64_t>(size, INT_MAX);
    Access access = use.writes ? Access::write : Access::read;
    while (from < end) {
        Mapping* m = fragment->space.find_from(from);
        if (!m || m->range.begin >= end) co_return;
        Range part{std::max(from, m->range.begin), std::min(end, m->range.end)};
        from = part.end;
        if (use.writes && !m->shared && !(m->prot & PROT_WRITE)) {
            co_await home_.memory_gate.open_text(file->process, part.pages());
            m = fragment->space.find(part.begin);
            if (!m) continue;
        }
        if (m->backing == Backing::native_file && !m->shared) continue;
        co_await home_.pager.supply.make_resident(*fragment, part, access);
    }
}

}  // namespace gpr::home
