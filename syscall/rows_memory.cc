#include "syscall/rows.h"

namespace gpr {
using namespace rows;
namespace {

constexpr const char* numa = "pages that it moves are those of the node where the thread runs";

// clang-format off
constexpr const char* lock = "home counts and allows it, but pages are not locked";

constexpr Row table[] = {
    {9, "mmap", coherent, full, maps, {num, num, num, num, fd, num}, "",
     {there::map, here::memory},
     changes_memory(MemoryCall::map)},
    {10, "mprotect", coherent, full, maps, {num, num, num}, "", {there::protect, here::memory},
     changes_memory(MemoryCall::protect)},
    {11, "munmap", coherent, full, maps, {num, num}, "", {there::unmap, here::memory},
     changes_memory(MemoryCall::unmap)},
    {12, "brk", coherent, full, maps, {num}, "", {there::set_break, here::memory},
     changes_memory(MemoryCall::set_break)},
    {25, "mremap", coherent, full, maps, {num, num, num, num, num}, "",
     {there::move, here::memory},
     changes_memory(MemoryCall::move)},
    {26, "msync", coherent, full, blocks | notify, {num, num, num}, "", {there::sync, here::sync}},
    {27, "mincore", home, full, notify, {num, num, raw}, "", {there::residence, here::residence}},
    {28, "madvise", coherent, full, maps | modifies, {num, num, num}, "",
     {there::advise, here::advise}, changes_memory(MemoryCall::advise)},
    {30, "shmat", coherent, full, maps, {num, num, num}, "", {there::forward, here::memory},
     changes_memory(MemoryCall::attach)},
    {67, "shmdt", coherent, full, maps, {num}, "", {there::forward, here::memory},
     changes_memory(MemoryCall::detach)},
    {149, "mlock", coherent, partial, notify | told, {num, num}, lock,
     {there::forward, here::lock},
     changes_memory(MemoryCall::lock)},
    {150, "munlock", coherent, full, notify | told, {num, num}, "", {there::unlock, here::lock},
     changes_memory(MemoryCall::unlock)},
    {151, "mlockall", coherent, partial, notify | told, {num}, lock, {there::forward, here::lock},
     changes_memory(MemoryCall::lock_all)},
    {152, "munlockall", coherent, full, notify | told, {}, "", {there::unlock, here::lock},
     changes_memory(MemoryCall::unlock_all)},
    {216, "remap_file_pages", coherent, full, maps, {num, num, num, num, num}, "",
     {there::forward, here::memory},
     changes_memory(MemoryCall::remap_file)},
    {237, "mbind", coherent, partial, notify | split_only, {num, num, num, raw, num, num}, numa,
     {there::memory_policy, here::memory_policy}},
    {238, "set_mempolicy", coherent, partial, notify | split_only, {num, raw, num}, numa,
     {there::memory_policy, here::memory_policy}},
    {239, "get_mempolicy", native, partial, plain, {raw, raw, num, num, num}, numa},
    {256, "migrate_pages", home, partial, plain, {num, num, raw, raw}, "moves home's pages"},
    {279, "move_pages", home, partial, plain, {num, num, raw, raw, raw, num},
     "answers for pages that are resident at home"},
    {319, "memfd_create", home, full, opens | by_rule, {text, num}},
    {323, "userfaultfd", home, partial, opens | notify | split_only, {num},
     "private anonymous memory, missing pages; see decision 20",
     {there::as_placed, here::faultfd}},
    {325, "mlock2", coherent, partial, notify | told, {num, num, num}, lock,
     {there::forward, here::lock},
     changes_memory(MemoryCall::lock)},
    {329, "pkey_mprotect", coherent, partial, maps, {num, num, num, num}, "see pkey_alloc",
     {there::protect, here::memory},
     changes_memory(MemoryCall::protect)},
    {330, "pkey_alloc", coherent, partial, notify, {num, num},
     "says that no key is left (ENOSPC): keys do not travel with the pages",
     {there::no_key, here::no_key}},
    {331, "pkey_free", coherent, partial, notify, {num}, "see pkey_alloc",
     {there::forward, here::let_run}},
    {440, "process_madvise", home, partial, notify, {fd, raw, num, num, num},
     "advice on the caller's own memory reaches home's pages only"},
    {447, "memfd_secret", home, partial, opens, {num}, "its mappings are anchored at home"},
    {448, "process_mrelease", home, full, plain, {fd, num}},
    {450, "set_mempolicy_home_node", native, partial, plain, {num, num, num, num}, numa},
    {453, "map_shadow_stack", refused, none, maps, {num, num, num},
     "shadow stacks do not cross"},
    {462, "mseal", coherent, partial, maps, {num, num, num},
     "gpr refuses what a seal forbids, /proc/PID/smaps does not show it",
     {there::forward, here::let_run},
     changes_memory(MemoryCall::seal)},
};
// clang-format on

}  // namespace

std::span<const Row> memory_rows() { return table; }

}  // namespace gpr
