// Finds what the kernel starts for a program: the program itself, or the interpreter of a script.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "tools/elf_file.h"

namespace gpr {

struct ProgramChain {
    std::vector<std::string> scripts;  // those that were followed; the named program first
    std::string path;                  // of the ELF program
    ElfFile elf;
};

// Follows #! lines, and env(1) in them, which looks for the interpreter in `search_path`.
Result<ProgramChain> follow_program(std::string path, const std::string& search_path);

}  // namespace gpr
