#include "acceptor/worker/shared_memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "acceptor/worker/worker.h"
#include "mm/page_table.h"
#include "syscall/park.h"

namespace gpr::worker {

void SharedMemory::know_shared(ObjectId object, uint64_t pages) {
    if (worker_.pager.shared.contains(object)) return;
    Fd memfd(memfd_create("shared", MFD_CLOEXEC));
    if (!memfd || pages > max_object_pages) {
        worker_.link.close("no memory to share between the program's processes");
        return;
    }
    worker_.pager.shared.add(object, std::move(memfd), pages);
}

// Answers the executor, which asks for the object's memfd.
void SharedMemory::give_shared(RemoteProcess& process, const Notification& n) {
    int memfd = worker_.pager.shared.memfd(static_cast<ObjectId>(n.args[1]));
    if (memfd < 0) {
        process.notifier->reply_error(n.id, ENOENT);
    } else {
        process.notifier->reply_with_fd(n.id, memfd);
    }
}

// Makes the mapping, replacing what was there. It cannot be used before it is registered.
Task<int64_t> SharedMemory::show_shared(Fragment& fragment, const Mapping& m) {
    StubThread& executor = fragment.executor();
    Range range = m.range;
    auto prot = static_cast<uint64_t>(m.prot);
    int64_t fd = co_await executor.call(gpr_park_number, gpr_park_shared, m.object);
    if (fd < 0) co_return fd;
    int64_t mapped = co_await executor.call(SYS_mmap, range.begin.value, range.size(), PROT_NONE,
                                            MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
                                            static_cast<uint64_t>(fd), m.object_page * page_size);
    co_await executor.call(SYS_close, static_cast<uint64_t>(fd));
    if (mapped < 0 && mapped >= -4095) co_return mapped;
    if (!fragment.register_range(range)) co_return -ENOMEM;
    worker_.pager.views.protect_present(fragment, m);
    fragment.space.for_each(range, [](Mapping& piece) { piece.registered = true; });
    co_return co_await executor.call(SYS_mprotect, range.begin.value, range.size(), prot);
}

void SharedMemory::resize_shared(wire::Resize::Reader resize) {
    if (resize.getPages() > max_object_pages) {
        worker_.link.close("home sent a size that cannot be");
        return;
    }
    worker_.pager.shared.resize(resize.getObject(), resize.getPages());
}

}  // namespace gpr::worker
