// Which code of a process runs where: code that must not run here is removed.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "mm/address_space.h"
#include "monitor/home/part.h"
#include "monitor/rules/split_policy.h"

namespace gpr::home {

class CodePlacement {
public:
    explicit CodePlacement(Home& home) : home_(home) {}

    Result<bool> keep_text(const HomeProcess& process, Mapping& mapping, const std::string& path,
                           uint64_t file_offset);
    static Task<Result<void>> take_code_away(Fragment& fragment, Mapping& mapping);
    CodePlace place_of(const std::string& path, const HomeProcess& process);
    Task<Result<void>> place_code(HomeProcess& process, Mapping& mapping, std::string path,
                                  uint64_t file_offset);

private:
    Task<Result<void>> trap_code(HomeProcess& process, Mapping& mapping, std::string path,
                                 uint64_t file_offset);

    Home& home_;
};

}  // namespace gpr::home
