// PROCMAP_QUERY: what a program asks of an open /proc/PID/maps. Its answer is read from the text
// that the program would be shown now (fs/proc/task_mmu.c).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/uapi/procmap.h"

namespace gpr {

// Whether this kernel has it; a program that finds it missing reads the text.
bool kernel_has_mapping_query();

// A line of /proc/PID/maps.
struct ShownMapping {
    uint64_t begin = 0, end = 0, offset = 0, inode = 0;
    uint64_t flags = 0;  // PROCMAP_QUERY_VMA_*
    uint32_t device_major = 0, device_minor = 0;
    std::string name;  // as proc_pid_maps(5) has it, but for escapes; may be empty

    [[nodiscard]] bool of_file() const { return inode != 0 || device_major != 0 || offset != 0; }
};
std::optional<ShownMapping> find_shown(std::string_view maps, uint64_t flags, uint64_t address);

// 0, or the errno of what is wrong with it before anything is looked for.
int error_of_query(const procmap_query& query);
// Fills what the mapping says of itself; what goes to the buffers is for the caller.
void answer_query(const ShownMapping& mapping, procmap_query& query);

// Of an ELF file that this opens: NT_GNU_BUILD_ID. Empty if it has none.
std::vector<std::byte> build_id_of(const std::string& path);

}  // namespace gpr
