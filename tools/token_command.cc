// `gpr token new`: writes a new token to stdout, or appends it to a file that only its owner can
// read.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <optional>

#include "base/fd.h"
#include "tools/command_line.h"
#include "tools/commands.h"
#include "tools/duration.h"
#include "transport/token.h"

namespace gpr {

const CommandSpec& token_spec() {
    static const CommandSpec spec{
        "token new",
        "[--expires DURATION] [--file FILE]",
        "Make a token. An acceptor admits whoever knows one from its token file.",
        {
            {"expires", SettingKind::text, "DURATION", "as in 12h, 30d or 8w (default: never)"},
            {"file", SettingKind::text, "FILE", "append to FILE, made with mode 0600, not stdout"},
        },
        false,
        0,
        "Copy the line to the initiator over a channel you trust, into a file with mode 0600."};
    return spec;
}

namespace {

Result<> append_line(const std::string& path, const std::string& line) {
    const Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC, 0600));
    if (!file) return fail(errno, fmt::format("cannot write the token file {}", path));
    struct stat status {};
    GPR_CHECK(from_libc(fstat(file.get(), &status), "cannot look at the token file"));
    // No token would be read from such a file, and others could read it.
    if (!S_ISREG(status.st_mode)) return fail(fmt::format("{} is not a regular file", path));
    if ((status.st_mode & 077) != 0) {
        return fail(
            fmt::format("the token file {} is open to others (mode {:04o}); run 'chmod 600 "
                        "{}' first, or name another",
                        path, status.st_mode & 07777, path));
    }
    const std::string text = line + '\n';
    GPR_CHECK(from_libc(write(file.get(), text.data(), text.size()), "cannot write the token"));
    return {};
}

Result<Token> make_token(const Settings& settings) {
    std::optional<std::chrono::seconds> lifetime;
    if (settings.has("expires")) {
        GPR_TRY(lifetime, parse_duration(settings.text("expires")));
    }
    return new_token(lifetime);
}

int report(const Error& error) {
    complain(error.message());
    return exit_failed;
}

}  // namespace

int token_main(const Words& arguments) {
    const bool asks_help =
        !arguments.empty() && (arguments.front() == "--help" || arguments.front() == "-h");
    if (!asks_help && (arguments.empty() || arguments.front() != "new")) {
        complain("a token can only be made: 'gpr token new'");
        return exit_usage;
    }
    const auto parsed =
        parse_command(token_spec(), {arguments.begin() + (asks_help ? 0 : 1), arguments.end()});
    if (!parsed) {
        complain(parsed.error().message());
        return exit_usage;
    }
    if (parsed->wants_help) {
        std::fputs(help_text(token_spec()).c_str(), stdout);
        return 0;
    }
    const Settings settings({parsed->flags});
    const auto token = make_token(settings);
    if (!token) return report(token.error());
    if (!settings.has("file")) {
        std::puts(token->line().c_str());
        return 0;
    }
    if (auto written = append_line(settings.text("file"), token->line()); !written) {
        return report(written.error());
    }
    return 0;
}

}  // namespace gpr
