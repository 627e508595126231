#include "monitor/paging/program_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "monitor/paging/pager.h"

namespace gpr::paging {

namespace {
// Other nodes may take a page away again before we use it. If it never arrives there is nothing at
// its address: the process is dead, or a file is shorter than its mapping.
constexpr int most_tries = 1000;

// /proc/PID/mem also shows memory that the program itself may not read. Addresses that are not in
// our list belong to the kernel (vdso).
bool hides(const AddressSpace& space, Range range) {
    bool hidden = false;
    space.overlapping(range, [&](const Mapping& m) { hidden = hidden || m.prot == PROT_NONE; });
    return hidden;
}
}  // namespace

Task<bool> ProgramMemory::write(Fragment& fragment, Address to, std::span<const std::byte> bytes) {
    return write(fragment, to, bytes, false);
}

Task<bool> ProgramMemory::write_by_debugger(Fragment& fragment, Address to,
                                            std::span<const std::byte> bytes) {
    return write(fragment, to, bytes, true);
}

Task<bool> ProgramMemory::write(Fragment& fragment, Address to, std::span<const std::byte> bytes,
                                bool by_debugger) {
    for (int idle = 0; !bytes.empty(); idle++) {
        if (idle == most_tries) co_return false;
        Mapping* m = fragment.space.find(to);
        const bool may_write = m && (m->prot & PROT_WRITE || (by_debugger && !m->shared));
        if (!may_write) co_return false;
        // A page may be in memory here without being ours to write.
        uint64_t in_page = std::min<uint64_t>(bytes.size(), page_size - to.value % page_size);
        bool shared = pager_.shared.contains(m->object);
        const int memfd = pager_.shared.memfd(m->object);
        bool beyond_end = memfd >= 0 && m->key(to).index >= pager_.shared.pages(m->object);
        if (beyond_end) co_return false;  // a write would make our copy longer than the file
        bool ours = (m->backing == Backing::native_file && !shared) ||
                    (core_.agent.presence(m->key(to)) == Presence::exclusive &&
                     !core_.agent.in_motion(m->key(to)));
        if (ours && memfd >= 0) {
            off_t offset = static_cast<off_t>(m->object_page * page_size + (to - m->range.begin));
            if (pwrite(memfd, bytes.data(), in_page, offset) < 0) co_return false;
        } else if (ours) {
            if (fragment.memory().write(to, bytes.data(), in_page) < in_page) {
                if (m->registered) {
                    fragment.write_enable({to.page(), to.page() + page_size});
                    pager_.installs.materialise(fragment, *m, to.page());
                }
                if (fragment.memory().write(to, bytes.data(), in_page) < in_page) ours = false;
            }
        }
        if (!ours && pager_.unfilled.is_unfilled(fragment, *m, to.page())) {
            idle = -1;
            bool ok = co_await pager_.unfilled.wait_for_program(fragment.shared_from_this(),
                                                                to.page(), true);
            if (!ok) co_return false;
            continue;
        }
        if (ours) {
            to = to + in_page;
            bytes = bytes.subspan(in_page);
            idle = 0;
            continue;
        }
        Range rest{to, to + bytes.size()};
        bool ok = co_await pager_.supply.acquire(fragment, rest, Access::write);
        if (!ok) co_return false;
    }
    co_return true;
}

Task<bool> ProgramMemory::read(Fragment& fragment, Address from, std::span<std::byte> bytes) {
    if (hides(fragment.space, {from, from + bytes.size()})) co_return false;
    for (int idle = 0; idle < most_tries; idle++) {
        size_t got = fragment.memory().read(from, bytes.data(), bytes.size());
        if (got == bytes.size()) co_return true;
        if (got > 0) idle = 0;
        from = from + got;
        bytes = bytes.subspan(got);
        Mapping* m = fragment.space.find(from);
        if (!m) co_return false;
        if (m->trapped && pager_.trapped.show_now(fragment, *m, from.page())) continue;
        PageKey key = m->key(from);
        if (core_.agent.presence(key) == Presence::exclusive && !core_.agent.in_motion(key)) {
            if (!pager_.installs.materialise(fragment, *m, from.page())) co_return false;
            if (pager_.unfilled.is_unfilled(fragment, *m, from.page())) {
                idle = -1;
                bool ok = co_await pager_.unfilled.wait_for_program(fragment.shared_from_this(),
                                                                    from.page(), false);
                if (!ok) co_return false;
            }
            continue;
        }
        Range rest{from, from + bytes.size()};
        bool ok = co_await pager_.supply.acquire(fragment, rest, Access::read);
        if (!ok) co_return false;
    }
    co_return false;
}

Task<std::optional<std::string>> ProgramMemory::read_text(Fragment& fragment, Address from,
                                                          size_t most) {
    std::string text;
    while (text.size() < most) {
        std::array<char, page_size> part;
        size_t bytes = std::min(page_size - from.value % page_size, most - text.size());
        bool ok =
            co_await read(fragment, from, std::as_writable_bytes(std::span(part).first(bytes)));
        if (!ok) co_return std::nullopt;
        size_t length = strnlen(part.data(), bytes);
        text.append(part.data(), length);
        if (length < bytes) co_return text;
        from = from + bytes;
    }
    co_return std::nullopt;
}

}  // namespace gpr::paging
