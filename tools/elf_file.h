// What an ELF file says about itself to the dynamic linker.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace gpr {

struct ElfFile {
    std::string interpreter;          // the dynamic linker; empty: static, or a library
    std::vector<std::string> needed;  // DT_NEEDED, in order
    std::string rpath;                // DT_RPATH; as ld.so has it, empty beside a RUNPATH
    std::string runpath;              // DT_RUNPATH
    bool no_default_folders = false;  // -z nodefaultlib
};

// An error with code ENOEXEC: it is no ELF file, or for another machine.
Result<ElfFile> read_elf(const std::string& path);

}  // namespace gpr
