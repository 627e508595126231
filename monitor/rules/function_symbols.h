// Finds the exported functions that `fn` rules choose in a library.
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "mm/chosen_functions.h"
#include "monitor/rules/exec_options.h"

namespace gpr {

struct FoundFunctions {
    std::shared_ptr<const ChosenFunctions> functions;  // none: none of it is chosen
    std::vector<SplitRule> rules;                      // that chose any
};

// rules: of kind `fn`, whose pattern matches the file. A function with several names counts under
// the first of them in alphabetical order; all versions of a name are chosen with it.
// An error with code ENOEXEC: it is no ELF file, or for another machine.
Result<FoundFunctions> find_functions(int fd, const std::string& library,
                                      const std::vector<SplitRule>& rules);

// How many bytes of the function follow from this offset on, whether it has a symbol or not; none:
// the file does not tell.
std::optional<uint64_t> rest_of_function(int fd, uint64_t offset);

// What a file is known by, as long as nobody writes to it.
struct FileIdentity {
    dev_t device = 0;
    ino_t inode = 0;
    int64_t changed_s = 0, changed_ns = 0;
    auto operator<=>(const FileIdentity&) const = default;
};

// How often threads left home for a function.
struct FunctionUse {
    uint64_t crossings = 0;
    uint64_t calls = 0;  // of these, at its first instruction
};

}  // namespace gpr
