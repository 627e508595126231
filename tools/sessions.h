// Finds the sessions on this host.
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

// Returns the sessions that answer, and calls `mute` with the reason for each that does not.
std::vector<ListedSession> list_sessions(
    bool everybody, const std::function<void(const Error&)>& mute,
    std::chrono::seconds patience = ControlClient::usual_patience);
// The session that this process belongs to, as part of the program or as the monitor. Root finds
// sessions of all users.
Result<ListedSession> session_with(pid_t pid);

// The process that is meant: the monitor stands for the program.
pid_t program_of(const ListedSession& session, pid_t pid);

Result<pid_t> parse_pid(const std::string& text);

// A number or text from an answer; `otherwise`, or an empty value, if it is missing or of another
// type. The session may be from another build of gpr, or another user's.
double number_at(const nlohmann::json& object, const char* key, double otherwise = 0);
// An address or another number of 64 bits; else 0.
uint64_t word_at(const nlohmann::json& object, const char* key);
// Without control characters: names are the program's choice, and this is for a terminal.
std::string text_at(const nlohmann::json& object, const char* key);
const nlohmann::json& object_at(const nlohmann::json& object, const char* key);

// The file of the mapping that has the address, or its protection if it has none; empty: there is
// no mapping.
std::string mapping_at(const nlohmann::json& mappings, uint64_t address);

bool is_list_of_objects(const nlohmann::json& value);
// Without control characters but for line ends.
std::string lines_at(const nlohmann::json& object, const char* key);
// In ASCII: names of others may contain any bytes. indent: as for dump(); -1: on one line.
void print_json(const nlohmann::json& value, int indent = 2);
// Prints what a session has answered, as JSON or as this table. Returns the exit status.
int show_answer(const Result<nlohmann::json>& answer, bool as_json,
                std::string (*table)(const nlohmann::json& answer));

// Such as "12.3 MB" and "4.56 s".
std::string megabytes_text(double bytes);
std::string seconds_text(double seconds);

// Parses the command line, prints help and errors; otherwise `run` decides the exit status.
int run_observer(const CommandSpec& spec, const Words& arguments,
                 const std::function<int(const ParsedCommand& parsed)>& run);
// For a command that takes one PID; complains if there is none.
int with_session(const ParsedCommand& parsed,
                 const std::function<int(const ListedSession& session, pid_t pid)>& run);

}  // namespace gpr
