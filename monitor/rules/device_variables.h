// What a program's environment must say so that vendors' libraries show it the devices it was
// given, numbered from 0 in their order.
#pragma once

#include <string>
#include <vector>

#include "monitor/rules/exec_options.h"
#include "transport/inventory.h"

namespace gpr {

std::vector<Variable> device_variables(const std::vector<Device>& given);

// As text for another process, and put into the environment there.
std::string variables_text(const std::vector<Variable>& variables);
void set_variables(const std::string& text);

}  // namespace gpr
