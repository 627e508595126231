#include "monitor/home/mapping_queries.h"

#include <sys/stat.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <span>

#include "monitor/home/home.h"
#include "monitor/home/main_stack.h"
#include "monitor/home/shown_maps.h"
#include "monitor/home/taken_calls.h"
#include "monitor/node/mapping_query.h"

namespace gpr::home {

namespace {

constexpr size_t most_stand_ins = 4096;

uint64_t inode_of(pid_t pid, int fd) {
    struct stat st {};
    return stat(fmt::format("/proc/{}/fd/{}", pid, fd).c_str(), &st) == 0 ? st.st_ino : 0;
}

std::span<std::byte> bytes_of(procmap_query& query) {
    return std::as_writable_bytes(std::span(&query, 1));
}

}  // namespace

void MappingQueries::note_stand_in(HomeProcess& shown, pid_t holder, int fd) {
    if (!kernel_has_mapping_query()) return;
    stand_ins_.push_back({inode_of(holder, fd), shown.pid, shown.fragment});
    if (stand_ins_.size() > most_stand_ins) stand_ins_.pop_front();
}

const MappingQueries::StandIn* MappingQueries::find(pid_t holder, int fd) const {
    const uint64_t inode = stand_ins_.empty() ? 0 : inode_of(holder, fd);
    if (inode == 0) return nullptr;
    auto found = std::ranges::find(stand_ins_, inode, &StandIn::inode);
    return found == stand_ins_.end() ? nullptr : &*found;
}

bool MappingQueries::is_query(pid_t holder, uint64_t fd, uint64_t command) const {
    return static_cast<uint32_t>(command) == PROCMAP_QUERY && find(holder, static_cast<int>(fd));
}

Task<void> MappingQueries::answer_here(HomeProcess& process, HomeThread& thread, Notification n) {
    auto taken = co_await home_.taken_calls.take_call(thread);
    if (!taken) co_return;
    SyscallArguments args;
    std::ranges::copy(n.args, args.begin());
    int64_t result = co_await answer(process, args);
    co_await home_.taken_calls.return_from(thread, std::move(*taken), result);
}

// Checks in the order of the kernel's errors. The program's struct begins with its size, as for
// clone3.
Task<int64_t> MappingQueries::answer(HomeProcess& process, SyscallArguments args) {
    const Address argument{args[2]};
    const StandIn* stand_in = find(process.pid, static_cast<int>(args[0]));
    if (!stand_in) co_return -ENOTTY;
    const pid_t pid = stand_in->shown;
    const std::weak_ptr<Fragment> memory = stand_in->memory;
    std::shared_ptr<Fragment> own = process.fragment;
    uint64_t size = 0;
    auto size_bytes = std::as_writable_bytes(std::span(&size, 1));
    if (!co_await home_.pager.memory.read(*own, argument, size_bytes)) co_return -EFAULT;
    if (size > page_size) co_return -E2BIG;
    constexpr size_t least = offsetof(procmap_query, query_flags) + sizeof(uint64_t);
    if (size < least) co_return -EINVAL;
    std::vector<std::byte> given(size);
    if (!co_await home_.pager.memory.read(*own, argument, given)) co_return -EFAULT;
    procmap_query query{};
    const size_t known = std::min(size, sizeof query);
    auto has_content = [](std::byte byte) { return byte != std::byte{0}; };
    if (std::any_of(given.begin() + static_cast<ptrdiff_t>(known), given.end(), has_content)) {
        co_return -E2BIG;
    }
    std::memcpy(&query, given.data(), known);
    if (int error = error_of_query(query)) co_return -error;
    HomeProcess* shown = home_.find_process(pid);
    if (!shown || !shown->fragment || shown->fragment != memory.lock()) co_return -ESRCH;
    const int64_t result = co_await answer_with(process, *shown, query);
    if (result != 0) co_return result;
    bool written = co_await home_.pager.memory.write(*own, argument, bytes_of(query).first(known));
    co_return written ? 0 : -EFAULT;
}

Task<int64_t> MappingQueries::answer_with(HomeProcess& process, HomeProcess& shown,
                                          procmap_query& query) {
    const pid_t pid = shown.pid;
    const Address low = home_.main_stack.used(shown);
    const std::string maps = shown_maps(shown, fmt::format("/proc/{}/maps", pid), low, false);
    auto found = find_shown(maps, query.query_flags, query.query_addr);
    if (!found) co_return -ENOENT;
    answer_query(*found, query);
    if (query.build_id_size != 0) {
        std::vector<std::byte> id;
        if (found->of_file()) id = build_id_of(fmt::format("/proc/{}/root{}", pid, found->name));
        if (query.build_id_size < id.size()) co_return -ENAMETOOLONG;
        query.build_id_size = static_cast<uint32_t>(id.size());
        std::shared_ptr<Fragment> own = process.fragment;
        if (!co_await home_.pager.memory.write(*own, {query.build_id_addr}, id)) co_return -EFAULT;
    }
    if (query.vma_name_size == 0) co_return 0;
    co_return co_await give_name(process, found->name, query);
}

Task<int64_t> MappingQueries::give_name(HomeProcess& process, const std::string& name,
                                        procmap_query& query) {
    const uint32_t room = std::min<uint32_t>(PATH_MAX, query.vma_name_size);
    const size_t size = name.empty() ? 0 : name.size() + 1;
    if (size > room) co_return -ENAMETOOLONG;
    query.vma_name_size = static_cast<uint32_t>(size);
    std::shared_ptr<Fragment> own = process.fragment;
    auto bytes = std::as_bytes(std::span(name.c_str(), size));
    bool written = co_await home_.pager.memory.write(*own, {query.vma_name_addr}, bytes);
    co_return written ? 0 : -EFAULT;
}

}  // namespace gpr::home
