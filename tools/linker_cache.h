// /etc/ld.so.cache: the index in which the dynamic linker looks up libraries by name.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace gpr {

using LinkerCache = std::map<std::string, std::string, std::less<>>;  // name to path

// `bytes` is a file in glibc's format "glibc-ld.so.cache1.1" (elf/cache.c, dl-cache.h). Entries for
// other machines, and for some processors only (glibc-hwcaps), are left out. Of a damaged file the
// intact entries are read.
LinkerCache parse_linker_cache(std::string_view bytes);

// This host's; empty if there is none.
LinkerCache read_linker_cache();

}  // namespace gpr
