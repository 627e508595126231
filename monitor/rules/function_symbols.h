// Finds the exported functions of a library that `fn` rules choose.
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
    std::shared_ptr<const ChosenFunctions> functions;  // null: no function is chosen
    std::vector<SplitRule> rules;                      // those that chose at least one
};

// rules: of kind `fn`, with a pattern that matches the file. A function with several names is
// listed under the first in alphabetical order; all versions of a name are chosen together. Fails
// with ENOEXEC if the file is no ELF file or for another machine.
Result<FoundFunctions> find_functions(int fd, const std::string& library,
                                      const std::vector<SplitRule>& rules);

// The number of bytes from this offset to the end of its function, which need not have a symbol;
// nullopt if the file does not say.
std::optional<uint64_t> rest_of_function(int fd, uint64_t offset);

// Identifies a file's content, as long as nobody writes to it.
struct FileIdentity {
    dev_t device = 0;
    ino_t inode = 0;
    int64_t changed_s = 0, changed_ns = 0;
    auto operator<=>(const FileIdentity&) const = default;
};

// How often threads left home for a function.
struct FunctionUse {
    uint64_t crossings = 0;
    uint64_t calls = 0;  // crossings at its first instruction
};

}  // namespace gpr
