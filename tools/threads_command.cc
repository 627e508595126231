// `gpr threads PID`: for each thread of a session, where it is and what it waits for.
#include <cstdio>
#include <map>

#include "tools/backtrace.h"
#include "tools/common_settings.h"
#include "tools/sessions.h"
#include "tools/table.h"

namespace gpr {

const CommandSpec& threads_spec() {
    static const CommandSpec spec{
        "threads",
        "[OPTION]... PID",
        "List the threads of the session that has process PID: on which node each is, what it "
        "does, and\nwhat it waits for.",
        {{"backtrace", SettingKind::toggle, "", "with the calls in which each thread is", false,
          'b'},
         json_setting},
        false,
        1,
        "NODE is home, or the name of the acceptor where the thread is. A system call that it "
        "waits\n"
        "in has the kernel's function behind it. CPU, FAULTS and PAGES (that came because of it) "
        "are\nof home and of acceptors; CALLS were carried home for it.\n"
        "With --backtrace threads that compute are stopped for a moment, wherever they are, and "
        "pages of\nstacks come home to be read. Of a thread that waits in a system call only rip "
        "and rsp are\nknown, since to stop it might end its wait: its calls end where more would "
        "be "
        "needed.\n\n"
        "exit status: 0; 1 the session was not found, or did not answer"};
    return spec;
}

namespace {

std::string both(const nlohmann::json& thread, const char* key) {
    const nlohmann::json& of = object_at(thread, key);
    return fmt::format("{}+{}", number_at(of, "home"), number_at(of, "away"));
}

std::string table(const nlohmann::json& answer) {
    std::vector<std::vector<std::string>> rows{{"PID", "TID", "NAME", "NODE", "STATE", "WAITS FOR",
                                                "CPU", "CROSSINGS", "CALLS", "FAULTS", "PAGES"}};
    for (const nlohmann::json& each : object_at(answer, "threads")) {
        const nlohmann::json &cpu = object_at(each, "cpu_s"), &cross = object_at(each, "crossings");
        rows.push_back(
            {fmt::format("{}", number_at(each, "pid")), fmt::format("{}", number_at(each, "tid")),
             text_at(each, "name"), text_at(each, "where"), text_at(each, "state"),
             text_at(each, "waits_for"),
             fmt::format("{:.2f}+{:.2f}", number_at(cpu, "home"), number_at(cpu, "away")),
             fmt::format("{}", number_at(cross, "out") + number_at(cross, "back")),
             fmt::format("{}", number_at(each, "calls_home")), both(each, "faults"),
             both(each, "pages_in")});
    }
    return format_table(rows);
}

// With the calls of each thread; why they cannot be told, where they cannot.
Result<> add_backtraces(const ListedSession& session, nlohmann::json& answer) {
    std::map<pid_t, Result<StandingProcess>> standing;
    for (const nlohmann::json& thread : answer["threads"]) {
        const auto pid = static_cast<pid_t>(number_at(thread, "pid"));
        if (!standing.contains(pid)) standing.emplace(pid, standing_process(session, pid));
    }
    GPR_CHECK(ProcessSymbols::read_files_as(session.client.owner()));
    std::map<pid_t, Result<Backtraces>> by_process;
    for (const auto& [pid, process] : standing) {
        by_process.emplace(
            pid, process ? backtraces_of(session, *process) : tl::make_unexpected(process.error()));
    }
    for (nlohmann::json& thread : answer["threads"]) {
        const auto known = by_process.find(static_cast<pid_t>(number_at(thread, "pid")));
        if (!known->second) {
            thread["backtrace_error"] = known->second.error().message();
            continue;
        }
        nlohmann::json frames = nlohmann::json::array();
        const auto found = known->second->find(static_cast<pid_t>(number_at(thread, "tid")));
        const auto calls = found == known->second->end() ? std::vector<CallFrame>() : found->second;
        for (const CallFrame& frame : calls) {
            frames.push_back({{"instruction", frame.instruction},
                              {"symbol", frame.symbol},
                              {"file", frame.file},
                              {"source", frame.source}});
        }
        thread["backtrace"] = std::move(frames);
    }
    return {};
}

std::string backtraces_text(const nlohmann::json& answer) {
    std::string text;
    for (const nlohmann::json& thread : object_at(answer, "threads")) {
        const std::string error = text_at(thread, "backtrace_error");
        text +=
            fmt::format("\n{} {} at {}{}{}\n", number_at(thread, "tid"), text_at(thread, "name"),
                        text_at(thread, "where"), error.empty() ? "" : ": ", error);
        size_t number = 0;
        for (const nlohmann::json& frame : object_at(thread, "backtrace")) {
            const std::string symbol = text_at(frame, "symbol");
            const std::string source = text_at(frame, "source");
            text += fmt::format("  #{:<2} {:#018x} {} {}\n", number++,
                                word_at(frame, "instruction"), symbol.empty() ? "?" : symbol,
                                source.empty() ? text_at(frame, "file") : source);
        }
    }
    return text;
}

std::string table_with_backtraces(const nlohmann::json& answer) {
    return table(answer) + backtraces_text(answer);
}

int show_threads(const ParsedCommand& parsed) {
    const Settings asked({parsed.flags});
    const bool as_json = asked.toggle(json_setting.name);
    return with_session(parsed, [&](const ListedSession& session, pid_t) {
        auto answer = session.client.ask({{"want", "threads"}});
        if (answer && !is_list_of_objects(object_at(*answer, "threads"))) {
            answer = fail("the session's answer is not understood");
        }
        const bool with_calls = asked.toggle("backtrace");
        if (answer && with_calls) {
            if (const auto added = add_backtraces(session, *answer); !added) {
                answer = tl::make_unexpected(added.error());
            }
        }
        return show_answer(answer, as_json, with_calls ? table_with_backtraces : table);
    });
}

}  // namespace

int threads_main(const Words& arguments) {
    return run_observer(threads_spec(), arguments, show_threads);
}

}  // namespace gpr
