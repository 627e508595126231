// Environment variables that make vendors' libraries show a program the devices that it was given,
// numbered from 0 in their order.
#pragma once

#include <string>
#include <vector>

#include "monitor/rules/exec_options.h"
#include "transport/inventory.h"

namespace gpr {

std::vector<Variable> device_variables(const std::vector<Device>& given);

// Variables as text to pass to another process, and that process's way to set them.
std::string variables_text(const std::vector<Variable>& variables);
void set_variables(const std::string& text);

}  // namespace gpr
