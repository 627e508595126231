// Environment variables by which vendors' libraries show a program only the devices that it was
// given, numbered from 0 in their order.
#pragma once

#include <string>
#include <vector>

#include "monitor/rules/exec_options.h"
#include "transport/inventory.h"

namespace gpr {

std::vector<Variable> device_variables(const std::vector<Device>& given);

// The variables as text for another process, which sets them with set_variables().
std::string variables_text(const std::vector<Variable>& variables);
void set_variables(const std::string& text);

}  // namespace gpr
