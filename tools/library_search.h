// Which libraries a program gets, found as the dynamic linker finds them (ld.so(8)), with the
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
        acceptor,  // a path rule says so
        perhaps,   // at the acceptor, if it has it; here it is not
        nowhere,
    };
    std::string name;       // as it was asked for
    std::string needed_by;  // the first that asked
    std::string path;       // empty: nowhere
    Place place = Place::nowhere;
    size_t path_rule = 0;  // for acceptor and perhaps, as PathRules counts
};

struct LinkerSettings {
    std::string library_path;  // LD_LIBRARY_PATH
    std::string preload;       // LD_PRELOAD
    LinkerCache cache;
};

// The program itself is not among them, its dynamic linker is. What libraries need that are at the
// acceptor only cannot be known here, nor what the program loads by dlopen.
std::vector<Library> libraries_of(const std::string& program, const ElfFile& elf,
                                  const PathRules& paths, const LinkerSettings& settings);

}  // namespace gpr
