// `gpr maps PID`: the mappings of a process, and on which nodes their pages are.
#include <cstdint>
#include <cstdio>

#include "tools/common_settings.h"
#include "tools/sessions.h"
#include "tools/table.h"

namespace gpr {

const CommandSpec& maps_spec() {
    static const CommandSpec spec{
        "maps",
        "[OPTION]... PID",
        "List the mappings of process PID: whose each is, how many of its pages are on each node, "
        "and\nhow many have moved.",
        {json_setting},
        false,
        1,
        "OWNER: where pages belong that nobody has touched, or, of code, the node where it runs "
        "alone.\nA page that is only read may be on several nodes. TO HOME, FROM HOME: pages whose "
        "content\ncame there and left since its memory was made, of which other mappings may show "
        "parts; those "
        "between\ntwo acceptors are not counted.\n\n"
        "exit status: 0; 1 the process was not found, or its session did not answer"};
    return spec;
}

namespace {

std::string count_at(const nlohmann::json& object, const char* key) {
    return fmt::format("{}", word_at(object, key));
}

std::string table(const nlohmann::json& answer) {
    std::vector<std::vector<std::string>> rows{{"RANGE", "PERM", "PAGES", "OWNER"}};
    std::vector<std::string> nodes;
    const nlohmann::json& mappings = object_at(answer, "mappings");
    for (const nlohmann::json& each : mappings) {
        const nlohmann::json& resident = object_at(each, "resident");
        if (!resident.is_object() || resident.size() <= nodes.size()) continue;
        nodes = {"home"};
        for (const auto& [name, pages] : resident.items()) {
            if (name != "home") nodes.push_back(name);
        }
    }
    for (const std::string& name : nodes) {
        rows[0].push_back(name == "home" ? "AT HOME" : "AT " + name);
    }
    for (const char* heading : {"TO HOME", "FROM HOME", "FILE"}) rows[0].emplace_back(heading);
    for (const nlohmann::json& each : mappings) {
        const uint64_t begin = word_at(each, "begin"), end = word_at(each, "end");
        const uint64_t size = std::max<uint64_t>(1, word_at(answer, "page_size"));
        std::vector<std::string> row{
            fmt::format("{:x}-{:x}", begin, end), text_at(each, "protection"),
            fmt::format("{}", (end - begin) / size), text_at(each, "owner")};
        const nlohmann::json& resident = object_at(each, "resident");
        for (const std::string& name : nodes) row.push_back(count_at(resident, name.c_str()));
        const nlohmann::json& traffic = object_at(each, "traffic");
        row.push_back(count_at(traffic, "pages_to_home"));
        row.push_back(count_at(traffic, "pages_from_home"));
        row.push_back(text_at(each, "file"));
        rows.push_back(std::move(row));
    }
    return format_table(rows);
}

int show_mappings(const ParsedCommand& parsed) {
    const bool as_json = Settings({parsed.flags}).toggle(json_setting.name);
    return with_session(parsed, [&](const ListedSession& session, pid_t pid) {
        const auto answer =
            session.client.ask({{"want", "mappings"}, {"pid", program_of(session, pid)}});
        return show_answer(answer, as_json, table);
    });
}

}  // namespace

int maps_main(const Words& arguments) {
    return run_observer(maps_spec(), arguments, show_mappings);
}

}  // namespace gpr
