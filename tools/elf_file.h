// What an ELF file says to the dynamic linker.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace gpr {

struct ElfFile {
    std::string interpreter;          // the dynamic linker; empty: static, or a library
    std::vector<std::string> needed;  // DT_NEEDED, in order
    std::string rpath;                // DT_RPATH; as for ld.so, empty if there is a RUNPATH
    std::string runpath;              // DT_RUNPATH
    bool no_default_folders = false;  // -z nodefaultlib
};

// An error with code ENOEXEC means: not an ELF file, or for another machine.
Result<ElfFile> read_elf(const std::string& path);

}  // namespace gpr
