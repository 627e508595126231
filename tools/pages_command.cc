// `gpr pages PID`: the pages of a process that go to and fro between nodes, and what is in them.
#include <cstdio>

#include "tools/common_settings.h"
#include "tools/process_symbols.h"
#include "tools/sessions.h"
#include "tools/table.h"

namespace gpr {

const CommandSpec& pages_spec() {
    static const CommandSpec spec{
        "pages",
        "[OPTION]... PID",
        "List the pages of process PID that went to and fro between nodes, those that moved most "
        "first,\nwith the mapping and the variables that are in them.",
        {json_setting},
        false,
        1,
        "MOVES: how often the page got another owner, or was given to more readers. Pages that "
        "threads\non two nodes write again and again make both wait; what is in them is best kept "
        "apart, or its\nthreads together. The table has the first 40, --json 256.\n\n"
        "exit status: 0; 1 the process was not found, or its session did not answer"};
    return spec;
}

namespace {

// In the table; as JSON all that the session tells.
constexpr size_t most_variables = 4;
constexpr size_t most_rows = 40;

// With what is in each page; why that is not known, where it is not.
Result<> add_names(const ListedSession& session, pid_t pid, nlohmann::json& answer) {
    const nlohmann::json about{{"want", "mappings"}, {"pid", pid}, {"resident", false}};
    GPR_TRY(const nlohmann::json told, session.client.ask(about));
    const nlohmann::json& mappings = object_at(told, "mappings");
    GPR_CHECK(ProcessSymbols::read_files_as(session.client.owner()));
    GPR_TRY(const ProcessSymbols symbols, ProcessSymbols::of(mappings));
    const uint64_t size = std::max<uint64_t>(1, word_at(told, "page_size"));
    for (nlohmann::json& page : answer["pages"]) {
        const uint64_t at = word_at(page, "address");
        page["mapping"] = mapping_at(mappings, at);
        page["variables"] = symbols.variables_in({{at}, {at + size}});
    }
    return {};
}

std::string words_of(const nlohmann::json& list, size_t most) {
    std::string text;
    size_t count = 0;
    for (const nlohmann::json& each : list) {
        if (++count > most) return text + " ...";
        text += (text.empty() ? "" : " ") + text_at({{"word", each}}, "word");
    }
    return text;
}

std::string table(const nlohmann::json& answer) {
    std::vector<std::vector<std::string>> rows{
        {"ADDRESS", "MOVES", "IS AT", "MAPPING", "VARIABLES"}};
    for (const nlohmann::json& page : object_at(answer, "pages")) {
        if (rows.size() > most_rows) break;
        rows.push_back({fmt::format("{:x}", word_at(page, "address")),
                        fmt::format("{}", word_at(page, "moves")),
                        words_of(object_at(page, "nodes"), SIZE_MAX), text_at(page, "mapping"),
                        words_of(object_at(page, "variables"), most_variables)});
    }
    return rows.size() == 1 ? "no page has gone to and fro\n" : format_table(rows);
}

int show_pages(const ParsedCommand& parsed) {
    const bool as_json = Settings({parsed.flags}).toggle(json_setting.name);
    return with_session(parsed, [&](const ListedSession& session, pid_t asked) {
        const pid_t pid = program_of(session, asked);
        auto answer = session.client.ask({{"want", "pages"}, {"pid", pid}});
        if (answer && !is_list_of_objects(object_at(*answer, "pages"))) {
            answer = fail("the session's answer is not understood");
        }
        if (answer) {
            if (const auto named = add_names(session, pid, *answer); !named) {
                answer = tl::make_unexpected(named.error());
            }
        }
        return show_answer(answer, as_json, table);
    });
}

}  // namespace

int pages_main(const Words& arguments) { return run_observer(pages_spec(), arguments, show_pages); }

}  // namespace gpr
