// A fuzz target: seeds() are valid inputs, one_input() must return whatever it gets and abort only
// where a promise of ours is broken. driver.cc mutates the seeds; with file names as arguments it
// runs those instead, which is what AFL and a saved crash need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gpr::fuzz {

using Bytes = std::vector<uint8_t>;

std::vector<Bytes> seeds();
void one_input(std::span<const uint8_t> input);
// Printed at the end: what the target saw, so that a run that tests nothing is visible. False:
// fail.
bool summarize(std::string& line);

}  // namespace gpr::fuzz
