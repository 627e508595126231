// `gpr syscalls`: prints the table that decides where system calls run, for people or for programs.
#include <cstdio>

#include "syscall/document.h"
#include "tools/command_line.h"
#include "tools/commands.h"

namespace gpr {

const CommandSpec& syscalls_spec() {
    static const CommandSpec spec{
        "syscalls",
        "[--json]",
        "List every x86-64 system call: where it runs, and what is known not to work.",
        {{"json", SettingKind::toggle, "", "an array of objects instead of a Markdown table"}}};
    return spec;
}

namespace {}  // namespace

int syscalls_main(const Words& arguments) {
    const auto parsed = parse_command(syscalls_spec(), arguments);
    if (!parsed) {
        complain(parsed.error().message());
        return exit_usage;
    }
    if (parsed->wants_help) {
        std::fputs(help_text(syscalls_spec()).c_str(), stdout);
        return 0;
    }
    const bool json = Settings({parsed->flags}).toggle("json");
    std::fputs((json ? syscalls_json() : syscalls_markdown()).c_str(), stdout);
    return 0;
}

}  // namespace gpr
