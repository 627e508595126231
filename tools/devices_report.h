// What `gpr devices` prints, from an inventory.
#pragma once

#include <string>

#include "transport/inventory.h"

namespace gpr {

// For people.
std::string devices_table(const std::string& where, const Inventory& inventory);

// For programs. docs/man/gpr.1 describes it; keys are never renamed.
std::string devices_json(const std::string& where, const Inventory& inventory);

// "80 GiB", "512 MiB"; "" for 0.
std::string size_text(uint64_t bytes);

}  // namespace gpr
