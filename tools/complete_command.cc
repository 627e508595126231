// `gpr complete WORD...`: for the scripts that complete command lines of gpr in shells. A line for
// each candidate, "WORD<tab>WHAT IT IS"; ":files" if a file's name may follow; ":program N" if that
// word, of which WORD is the first, is a program and what follows is its business.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "tools/common_settings.h"
#include "tools/completion.h"
#include "tools/profiles.h"
#include "tools/sessions.h"

namespace gpr {
namespace {

const char* variable(const char* name) { return getenv(name); }

std::vector<Candidate> acceptors() {
    std::vector<Candidate> names{{"local", "an acceptor inside this command"}};
    const auto gathered = gather_settings(exec_spec(), {}, variable);
    if (!gathered) return names;
    for (const std::string& known : gathered->known_acceptors) {
        const size_t equals = known.find('=');
        const bool is_named = equals != std::string::npos;
        names.push_back({known.substr(0, equals), is_named ? known.substr(equals + 1) : ""});
    }
    return names;
}

std::vector<Candidate> profiles() {
    std::vector<Candidate> names;
    const Profiles all(profile_folders(variable));
    for (const std::string& name : all.names()) {
        const auto profile = all.find(name);
        names.push_back({name, profile ? profile->description : ""});
    }
    return names;
}

std::vector<Candidate> sessions() {
    std::vector<Candidate> pids;
    constexpr std::chrono::seconds patience{1};  // somebody waits at a prompt
    const auto ignore = [](const Error&) {};
    for (const ListedSession& each : list_sessions(false, ignore, patience)) {
        pids.push_back({fmt::format("{}", each.client.pid()), text_at(each.about, "program")});
    }
    return pids;
}

}  // namespace

int complete_main(const Words& arguments) {
    const Completion completion = complete(arguments, {acceptors, profiles, sessions});
    for (const Candidate& each : completion.candidates) {
        fmt::print("{}\t{}\n", each.word, each.about);
    }
    if (completion.files) std::puts(":files");
    if (completion.program) fmt::print(":program {}\n", *completion.program);
    return 0;
}

}  // namespace gpr
