#include "tools/manual_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/command_line.h"

namespace gpr {
namespace {

// Text for groff: a backslash or hyphen stands for itself, and no line is taken for a request.
std::string escaped(std::string_view text) {
    std::string safe;
    bool begins_line = true;
    for (const char c : text) {
        if (begins_line && (c == '.' || c == '\'')) safe += "\\&";
        begins_line = c == '\n';
        if (c == '\\') {
            safe += "\\e";
        } else if (c == '-') {
            safe += "\\-";
        } else {
            safe += c;
        }
    }
    return safe;
}

// Paragraphs are divided by empty lines; other line ends are spaces.
std::string paragraphs(std::string_view text, std::string_view between) {
    std::string page = escaped(text);
    for (size_t at = 0; (at = page.find("\n\n", at)) != std::string::npos;) {
        page.replace(at, 2, fmt::format("\n{}\n", between));
    }
    return page + '\n';
}

// With its line ends, for what is laid out in columns.
std::string as_typed(std::string_view text) {
    while (text.ends_with('\n')) text.remove_suffix(1);
    return fmt::format(".nf\n{}\n.fi\n", escaped(text));
}

std::string options(const CommandSpec& spec, Section section) {
    std::string page;
    for (const Setting& setting : spec.settings) {
        if (setting.section != section) continue;
        page += fmt::format(".TP\n.B {}\n", escaped(shown_flag(setting)));
        page += paragraphs(fmt::format("{}.{}{}", setting.help, setting.details.empty() ? "" : " ",
                                       setting.details),
                           ".IP");
    }
    return page;
}

}  // namespace

std::string manual_page(const Command& command) {
    const CommandSpec& spec = command.spec();
    std::string upper(command.name);
    std::ranges::transform(upper, upper.begin(), ::toupper);
    std::string page =
        fmt::format(".TH GPR\\-{} 1 \"\" \"gpr {}\" \"User Commands\"\n", upper, GPR_VERSION);
    page += fmt::format(".SH NAME\ngpr\\-{} \\- {}\n", command.name, escaped(command.summary));
    page += fmt::format(".SH SYNOPSIS\n.B gpr {}\n{}\n", spec.name, escaped(spec.usage));
    page += ".SH DESCRIPTION\n" + paragraphs(spec.summary, ".PP");
    if (!spec.details.empty()) page += ".PP\n" + paragraphs(spec.details, ".PP");
    page += ".SH OPTIONS\n" + options(spec, Section::usual);
    page += ".TP\n.B \\-h, \\-\\-help\nprint a summary of this.\n";
    const std::string diagnosis = options(spec, Section::diagnosis);
    if (!diagnosis.empty()) page += ".SS Options for diagnosis\n" + diagnosis;
    const std::string configuration = configuration_note(spec);
    if (!configuration.empty()) page += ".PP\n" + paragraphs(configuration, ".PP");
    if (!spec.notes.empty()) page += ".SH NOTES\n" + as_typed(spec.notes);
    page += ".SH SEE ALSO\n.BR gpr (1)\n";
    return page;
}

}  // namespace gpr
