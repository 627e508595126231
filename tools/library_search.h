// Finds the libraries that a program gets, as the dynamic linker does (ld.so(8)) and with the
// session's path rules: what a rule gives to the acceptor is not looked for here.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "monitor/rules/path_rules.h"
#include "tools/elf_file.h"
#include "tools/linker_cache.h"

namespace gpr {

struct Library {
    enum class Place {
        here,
        acceptor,  // by a path rule
        perhaps,   // not here; at the acceptor, if it has it
        nowhere,
    };
    std::string name;       // as the program or library asks for it
    std::string needed_by;  // the first file that asks for it
    std::string path;       // empty: found nowhere
    Place place = Place::nowhere;
    size_t path_rule = 0;  // for acceptor and perhaps: the rule's number in PathRules
};

struct LinkerSettings {
    std::string library_path;  // LD_LIBRARY_PATH
    std::string preload;       // LD_PRELOAD
    LinkerCache cache;
};

// Includes the program's dynamic linker, but not the program itself. What libraries need that are
// only at the acceptor cannot be known here, nor what the program loads by dlopen.
std::vector<Library> libraries_of(const std::string& program, const ElfFile& elf,
                                  const PathRules& paths, const LinkerSettings& settings);

}  // namespace gpr
