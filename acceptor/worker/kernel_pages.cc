#include "acceptor/worker/kernel_pages.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "acceptor/worker/vdso.h"
#include "acceptor/worker/worker.h"
#include "base/log.h"

namespace gpr::worker {

namespace {

// Where [vvar] and [vdso] are moved first, because their old and new places may overlap. They stay
// there if home's kernel is a different one.
constexpr uint64_t vdso_hop = GPR_VDSO_HOP;

bool is_kernel_page(const InheritedMapping& m) {
    return m.name == "[vdso]" || m.name.starts_with("[vvar");
}

bool stays(const InheritedMapping& m) {
    return m.name == "[vsyscall]" ||
           (m.range.begin.value >= GPR_RESERVED_BEGIN && m.range.end.value <= GPR_RESERVED_END);
}

// The range of both [vvar] and [vdso], which are adjacent.
Range kernel_pages(const std::vector<InheritedMapping>& mappings) {
    Range all;
    for (const InheritedMapping& m : mappings) {
        if (!is_kernel_page(m)) continue;
        if (all.empty()) all.begin = m.range.begin;
        all.end = m.range.end;
    }
    return all;
}

void move_kernel_pages(const std::vector<InheritedMapping>& mappings, uint64_t from, uint64_t to,
                       std::vector<Call>& calls) {
    uint64_t begin = kernel_pages(mappings).begin.value;
    for (const InheritedMapping& m : mappings) {
        if (!is_kernel_page(m)) continue;
        uint64_t offset = m.range.begin.value - begin;
        calls.push_back({SYS_mremap,
                         {from + offset, m.range.size(), m.range.size(),
                          MREMAP_MAYMOVE | MREMAP_FIXED, to + offset},
                         0});
    }
}

}  // namespace

KernelPages::KernelPages(Worker& worker, std::vector<std::byte> peer_vdso, bool always_unlike)
    : worker_(worker),
      peer_vdso_(std::move(peer_vdso)),
      unlike_vdso_(always_unlike || !same_functions(peer_vdso_, own_vdso())) {}

Task<Result<void>> KernelPages::clear_inherited(RemoteProcess& process, const EmptyProcess& empty,
                                                wire::ProcessStart::Reader start) {
    StubThread& stub = *process.threads.at(process.pid)->stub;
    std::vector<Call> calls;
    for (const InheritedMapping& m : empty.mappings) {
        if (!is_kernel_page(m) && !stays(m)) {
            calls.push_back({SYS_munmap, {m.range.begin.value, m.range.size()}, 0});
        }
    }
    Range ours = kernel_pages(empty.mappings);
    Range wanted{{start.getVdsoBegin()}, {start.getVdsoEnd()}};
    if (!wanted.empty()) move_kernel_pages(empty.mappings, ours.begin.value, vdso_hop, calls);
    bool alike = !unlike_vdso_ && wanted.size() == ours.size();
    if (!wanted.empty() && alike) {
        move_kernel_pages(empty.mappings, vdso_hop, wanted.begin.value, calls);
    }
    auto done = co_await stub.run_all(std::move(calls), "cannot empty the new process");
    if (!done || wanted.empty() || alike) co_return done;
    co_return co_await show_foreign_vdso(process, stub, wanted.end, ours.size());
}

// Maps home's vdso image, changed such that its functions call those of ours.
Task<Result<void>> KernelPages::show_foreign_vdso(RemoteProcess& process, StubThread& stub,
                                                  Address end, uint64_t our_pages) {
    uint64_t size = (peer_vdso_.size() + page_size - 1) / page_size * page_size;
    uint64_t ours_at = vdso_hop + our_pages - own_vdso().size();
    auto proxy = vdso_proxy(peer_vdso_, own_vdso(), ours_at);
    if (!proxy) co_return tl::make_unexpected(proxy.error());
    Address at{end.value - size};
    std::vector<Call> calls{{SYS_mmap,
                             {at.value, size, PROT_READ | PROT_EXEC,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, ~0ULL, 0},
                             0}};
    auto done = co_await stub.run_all(std::move(calls), "cannot map the initiator's vdso");
    if (!done) co_return done;
    if (!process.fragment->memory().write_exact(at, proxy->data(), proxy->size())) {
        co_return fail("cannot write the initiator's vdso");
    }
    spdlog::info("process {}: the initiator's vdso goes on in this kernel's", process.pid);
    co_return Result<void>{};
}

}  // namespace gpr::worker
