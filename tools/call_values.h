// Values in system calls that need more than their type to be shown in words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tools/kernel_types.h"
#include "tools/traced_call.h"

namespace gpr {

// {sa_family=AF_INET, sin_port=htons(80), ...}
std::string socket_address_text(std::string_view bytes);
// [CHLD INT]
std::string signal_set_text(std::string_view bytes);
// [{WIFEXITED(s) && WEXITSTATUS(s) == 0}]
std::string wait_status_text(uint32_t status);
std::string signal_action_text(std::string_view bytes);
// {si_signo=SIGCHLD, si_code=CLD_EXITED, ...}
std::string signal_info_text(std::string_view bytes);
// "+++ exited with 0 +++"; status: of wait4.
std::string end_text(uint32_t status);

// [{iov_base="...", iov_len=3}, ...]; bytes: the array.
std::string vector_text(const TracedCall& call, unsigned argument, bool at_end,
                        const TracedPart& vector);
std::string message_text(const TracedCall& call, unsigned argument, bool at_end,
                         const TracedPart& message);
// ["ls", "-l"]
std::string strings_text(const TracedCall& call, unsigned argument, uint64_t address);

}  // namespace gpr
