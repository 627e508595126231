#include "tools/library_search.h"

#include <algorithm>
#include <array>
#include <deque>
#include <filesystem>
#include <optional>
#include <set>

namespace gpr {
namespace {

namespace fs = std::filesystem;

// Debian's folders, then those of other distributions.
constexpr std::array default_folders = {"/lib/x86_64-linux-gnu",
                                        "/usr/lib/x86_64-linux-gnu",
                                        "/lib",
                                        "/usr/lib",
                                        "/lib64",
                                        "/usr/lib64"};
constexpr std::string_view lib_token = "lib/x86_64-linux-gnu";

// A file that is being linked, and the file that needs it.
struct Linked {
    std::string path;
    ElfFile elf;
    const Linked* loader = nullptr;
};

std::vector<std::string> cut(std::string_view text, std::string_view separators) {
    std::vector<std::string> parts;
    while (!text.empty()) {
        const size_t end = std::min(text.find_first_of(separators), text.size());
        if (end > 0) parts.emplace_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return parts;
}

void replace_all(std::string& text, std::string_view token, std::string_view by) {
    for (size_t at = 0; (at = text.find(token, at)) != std::string::npos; at += by.size()) {
        text.replace(at, token.size(), by);
    }
}

std::string expand(std::string text, const std::string& file) {
    std::error_code missing;
    const fs::path real = fs::canonical(file, missing);
    const std::string origin = (missing ? fs::path(file) : real).parent_path().string();
    for (const char* token : {"${ORIGIN}", "$ORIGIN"}) replace_all(text, token, origin);
    for (const char* token : {"${LIB}", "$LIB"}) replace_all(text, token, lib_token);
    for (const char* token : {"${PLATFORM}", "$PLATFORM"}) replace_all(text, token, "x86_64");
    return text;
}

class Search {
public:
    Search(const PathRules& paths, const LinkerSettings& settings)
        : paths_(paths), settings_(settings) {}

    void link(std::string path, ElfFile elf, const Linked* loader) {
        linked_.push_back({std::move(path), std::move(elf), loader});
    }

    void want(const std::string& name, const std::string& needed_by, const Linked& loader) {
        if (!asked_.insert(name).second) return;
        Library library = find(name, loader);
        // A file found under another name is not listed again, as the linker itself does not load
        // it again.
        std::error_code missing;
        const std::string real = fs::canonical(library.path, missing).string();
        if (!missing && !files_.insert(real).second) return;
        library.needed_by = needed_by;
        // What it needs itself can be read if the file is here, too.
        auto elf = read_elf(library.path);
        if (elf) link(library.path, std::move(*elf), &loader);
        found.push_back(std::move(library));
    }

    // Breadth first, as ld.so does.
    void run() {
        const Linked& program = linked_.front();
        if (!program.elf.interpreter.empty()) {
            want(program.elf.interpreter, program.path, program);
        }
        for (const std::string& name : cut(settings_.preload, " :")) {
            want(name, "LD_PRELOAD", program);
        }
        for (size_t i = 0; i < linked_.size(); i++) {
            const std::vector<std::string> needed = linked_[i].elf.needed;
            for (const std::string& name : needed) want(name, linked_[i].path, linked_[i]);
        }
    }

    std::vector<Library> found;

private:
    [[nodiscard]] std::vector<std::string> candidates(const std::string& name,
                                                      const Linked& loader) const {
        if (name.find('/') != std::string::npos) return {expand(name, loader.path)};
        std::vector<std::string> places;
        auto add = [&](const std::string& folders, const std::string& file) {
            for (const std::string& folder : cut(folders, ":;")) {
                places.push_back(expand(folder, file) + "/" + name);
            }
        };
        if (loader.elf.runpath.empty()) {
            for (const Linked* at = &loader; at; at = at->loader) add(at->elf.rpath, at->path);
        }
        add(settings_.library_path, loader.path);
        add(loader.elf.runpath, loader.path);
        if (loader.elf.no_default_folders) return places;
        const auto cached = settings_.cache.find(name);
        if (cached != settings_.cache.end()) places.push_back(cached->second);
        for (const char* folder : default_folders)
            places.push_back(fmt::format("{}/{}", folder, name));
        return places;
    }

    [[nodiscard]] Library find(const std::string& name, const Linked& loader) const {
        std::optional<Library> elsewhere;
        for (const std::string& path : candidates(name, loader)) {
            const PathVerdict verdict = paths_.owner_of(path);
            const bool is_here = read_elf(path).has_value();
            if (verdict.owner != PathOwner::acceptor && is_here) {
                return {name, "", path, Library::Place::here};
            }
            if (verdict.owner == PathOwner::home) continue;
            // A file that both hosts have is found at this place. One that only the acceptor may
            // have is used unless a later place here has it.
            const bool surely = verdict.owner == PathOwner::acceptor;
            Library library{name, "", path,
                            surely ? Library::Place::acceptor : Library::Place::perhaps,
                            verdict.rule};
            if (surely && is_here) return library;
            if (!elsewhere) elsewhere = std::move(library);
        }
        return elsewhere.value_or(Library{name});
    }

    const PathRules& paths_;
    const LinkerSettings& settings_;
    std::deque<Linked> linked_;  // they point to each other
    std::set<std::string> asked_;
    std::set<std::string> files_;
};

}  // namespace

std::vector<Library> libraries_of(const std::string& program, const ElfFile& elf,
                                  const PathRules& paths, const LinkerSettings& settings) {
    Search search(paths, settings);
    search.link(program, elf, nullptr);
    search.run();
    return std::move(search.found);
}

}  // namespace gpr
