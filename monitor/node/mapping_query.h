// PROCMAP_QUERY: an ioctl on an open /proc/PID/maps. The answer is computed from the text of that
// file as the program would read it now (fs/proc/task_mmu.c).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/uapi/procmap.h"

namespace gpr {

// Whether this kernel has the ioctl; a program without it reads the text.
bool kernel_has_mapping_query();

// A line of /proc/PID/maps.
struct ShownMapping {
    uint64_t begin = 0, end = 0, offset = 0, inode = 0;
    uint64_t flags = 0;  // PROCMAP_QUERY_VMA_*
    uint32_t device_major = 0, device_minor = 0;
    std::string name;  // as in proc_pid_maps(5), without escapes; may be empty

    [[nodiscard]] bool of_file() const { return inode != 0 || device_major != 0 || offset != 0; }
};
std::optional<ShownMapping> find_shown(std::string_view maps, uint64_t flags, uint64_t address);

// 0, or the errno for a query that is invalid in itself.
int error_of_query(const procmap_query& query);
// Fills in the mapping's attributes; the caller fills the buffers.
void answer_query(const ShownMapping& mapping, procmap_query& query);

// The NT_GNU_BUILD_ID of an ELF file; empty if it has none.
std::vector<std::byte> build_id_of(const std::string& path);

}  // namespace gpr
