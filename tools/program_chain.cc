#include "tools/program_chain.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tools/find_program.h"

namespace gpr {
namespace {

// The kernel's own limit (fs/exec.c): a script may be the interpreter of another.
constexpr size_t most_scripts = 5;

// The words after #!; empty if there are none.
std::vector<std::string> interpreter_line(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string line;
    std::getline(file, line);
    if (!line.starts_with("#!")) return {};
    std::istringstream text(line.substr(2));
    std::vector<std::string> words;
    for (std::string word; text >> word;) words.push_back(std::move(word));
    return words;
}

// Finds the program that env(1) runs: the first word that is neither an option nor NAME=VALUE.
std::string program_of_env(const std::vector<std::string>& words) {
    for (size_t i = 1; i < words.size(); i++) {
        const bool plain = words[i].front() != '-' && words[i].find('=') == std::string::npos;
        if (plain) return words[i];
    }
    return "";
}

}  // namespace

Result<ProgramChain> follow_program(std::string path, const std::string& search_path) {
    ProgramChain chain;
    while (true) {
        auto elf = read_elf(path);
        if (elf) {
            chain.path = std::move(path);
            chain.elf = std::move(*elf);
            return chain;
        }
        if (elf.error().code != ENOEXEC) return Failure(elf.error());
        const std::vector<std::string> words = interpreter_line(path);
        if (words.empty()) {
            return fail(
                fmt::format("{}, and no script that names its interpreter", elf.error().what));
        }
        if (chain.scripts.size() == most_scripts) {
            return fail(fmt::format("{} is a script of too many scripts", chain.scripts.front()));
        }
        chain.scripts.push_back(path);
        const bool by_env = std::filesystem::path(words.front()).filename() == "env";
        const std::string next = by_env ? program_of_env(words) : words.front();
        auto found = find_program(next, search_path);
        if (!found) {
            return fail(found.error().code,
                        fmt::format("{} is a script for '{}', which cannot be run", path, next));
        }
        path = std::move(*found);
    }
}

}  // namespace gpr
