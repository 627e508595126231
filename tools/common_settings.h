// Settings that several commands have, and settings that a configuration file may hold.
#pragma once

#include <vector>

#include "tools/command_line.h"
#include "tools/settings.h"

namespace gpr {

inline constexpr Setting acceptor_setting{"acceptor", SettingKind::list, "[NAME=]ADDR",
                                          "a host to run on; may be repeated, see RULE@NAME"};
inline constexpr Setting split_setting{"split", SettingKind::list, "RULE[@NAME]",
                                       "what runs there; may be repeated"};
inline constexpr Setting token_file_setting{"token-file", SettingKind::text, "FILE",
                                            "token that both sides know ('gpr token new')", true};
inline constexpr Setting plain_setting{"plain", SettingKind::toggle, "",
                                       "allow TCP without encryption (tcp://HOST:PORT)"};
inline constexpr Setting log_setting{"log", SettingKind::text, "FILE",
                                     "write the log to FILE (or '-', stdout) instead of stderr",
                                     true};
inline constexpr Setting log_level_setting{"log-level", SettingKind::text, "LEVEL",
                                           "trace, debug, info, warning, error or off"};
inline constexpr Setting metrics_setting{"metrics", SettingKind::text, "ADDR",
                                         "let Prometheus fetch counts from http://ADDR/metrics"};
inline constexpr Setting json_setting{"json", SettingKind::toggle, "",
                                      "one object instead of tables"};
inline constexpr Setting all_setting{"all", SettingKind::toggle, "",
                                     "the whole table, not only what is wrong"};
inline constexpr Setting config_setting{"config", SettingKind::text, "FILE",
                                        "read this configuration, not the usual one", true};

struct GatheredSettings {
    Settings settings;
    std::string config_file;                   // empty: none was read
    std::vector<std::string> known_acceptors;  // from that file, as NAME=ADDR or ADDR
};

// From flags, then the environment, then the configuration file.
Result<GatheredSettings> gather_settings(const CommandSpec& spec, const Answers& flags,
                                         const Environment& environment);

// A name from the configuration is replaced by its address; any other word is returned as it is.
std::string address_of(const std::string& word, const GatheredSettings& gathered);
// The acceptors asked for, as [NAME=]ADDR.
std::vector<std::string> acceptors_of(const GatheredSettings& gathered);

// Reports variables that begin like gpr's but are unknown, as a typing error would go unnoticed.
// One line for each.
std::vector<std::string> remarks_on_environment(const char* const* environment);

}  // namespace gpr
