// What may follow on a command line of gpr that is being typed in a shell. The shells' scripts are
// in data/completion.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/commands.h"

namespace gpr {

struct Candidate {
    std::string word;   // the whole word, also what has been typed of it
    std::string about;  // in a few words; may be empty
};

struct Completion {
    std::vector<Candidate> candidates;
    bool files = false;             // or a file's name
    std::optional<size_t> program;  // or whatever may follow the program that begins at this word
};

// What only this host knows.
struct CompletionSources {
    std::function<std::vector<Candidate>()> acceptors;  // names of the configuration
    std::function<std::vector<Candidate>()> profiles;
    std::function<std::vector<Candidate>()> sessions;  // process ids
};

// words: what stands behind "gpr"; the last one is being typed, and may be empty.
Completion complete(const Words& words, const CompletionSources& sources);

}  // namespace gpr
