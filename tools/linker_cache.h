// /etc/ld.so.cache: where the dynamic linker finds libraries by their names.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace gpr {

using LinkerCache = std::map<std::string, std::string, std::less<>>;  // name to path

// bytes: a file in glibc's format "glibc-ld.so.cache1.1" (elf/cache.c, dl-cache.h). Entries of
// other machines, and those for some processors only (glibc-hwcaps), are left out; of damaged files
// what is whole is read.
LinkerCache parse_linker_cache(std::string_view bytes);

// This host's; empty if there is none.
LinkerCache read_linker_cache();

}  // namespace gpr
