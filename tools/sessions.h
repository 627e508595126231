// The sessions on this host, for the commands that look at them.
#pragma once

#include <sys/types.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "monitor/control/control_client.h"
#include "tools/command_line.h"
#include "tools/commands.h"

namespace gpr {

struct ListedSession {
    ControlClient client;
    nlohmann::json about;  // what it says of itself
};

// Those that answer. mute: told of each that does not, why.
std::vector<ListedSession> list_sessions(bool everybody,
                                         const std::function<void(const Error&)>& mute);
// The one that has this process: of its program, or its monitor. Root finds everybody's.
Result<ListedSession> session_with(pid_t pid);

// The process that is meant: the monitor stands for the program.
pid_t program_of(const ListedSession& session, pid_t pid);

Result<pid_t> parse_pid(const std::string& text);

// A number or text of an answer; where it has none, or something else, the other one. A session may
// be of another build of gpr, or of another user.
double number_at(const nlohmann::json& object, const char* key, double otherwise = 0);
// An address or another number of 64 bits; else 0.
uint64_t word_at(const nlohmann::json& object, const char* key);
// Without control characters: names are the program's choice, and this is for a terminal.
std::string text_at(const nlohmann::json& object, const char* key);
const nlohmann::json& object_at(const nlohmann::json& object, const char* key);

// 12.3 MB, 4.56 s.
std::string megabytes_text(double bytes);
std::string seconds_text(double seconds);

// Reads the command line, gives help, complains; else `run` decides the exit status.
int run_observer(const CommandSpec& spec, const Words& arguments,
                 const std::function<int(const ParsedCommand& parsed)>& run);
// Of a command that wants one PID; complains where it is none.
int with_session(const ParsedCommand& parsed,
                 const std::function<int(const ListedSession& session, pid_t pid)>& run);

}  // namespace gpr
