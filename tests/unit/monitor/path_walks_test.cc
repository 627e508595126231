#include "monitor/home/path_walks.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "../temporary_folder.h"

namespace fs = std::filesystem;

namespace gpr::home {

namespace {

// A folder with the directories a/b, and the links l, to a, and far, to the root's path of a/b.
struct Tree {
    Tree() {
        fs::create_directories(at("a/b"));
        fs::create_symlink("a", at("l"));
        fs::create_symlink(at("a/b"), at("far"));
    }
    [[nodiscard]] std::string at(const std::string& path) const {
        return folder.path() + "/" + path;
    }
    PathWalks::Way walk(const std::string& path) { return walks.to_directory({}, at(path)); }
    [[nodiscard]] bool holds(const PathWalks::Way& way) const {
        return std::ranges::all_of(way.ids, [this](uint32_t id) { return names.holds(id); });
    }
    bool holds_after_events(const PathWalks::Way& way) {
        static_cast<void>(names.take_gone());
        return holds(way);
    }

    TemporaryFolder folder;
    WatchedNames names;
    PathWalks walks{names};
};

}  // namespace

TEST_CASE("the parts of a path") {
    CHECK(PathWalks::join(PathWalks::parts("//a/./b//..c/../")) == "/a/b/..c/..");
    CHECK(PathWalks::join(PathWalks::parts(".")).empty());
}

TEST_CASE("a way holds until a name on it means something else") {
    Tree tree;
    auto way = tree.walk("a/b");
    if (way.error < 0) return;  // temporary files are on another kind of file system
    CHECK(way.error == 0);
    CHECK(way.watch >= 0);
    fs::create_directory(tree.at("a/other"));
    fs::create_directory(tree.at("a/b/below"));
    CHECK(tree.holds_after_events(way));
    fs::rename(tree.at("a/b"), tree.at("a/c"));
    CHECK_FALSE(tree.holds_after_events(way));
    CHECK(tree.walk("a/b").error == ENOENT);
    way = tree.walk("a/c");
    CHECK(way.error == 0);
    chmod(tree.at("a").c_str(), 0700);
    CHECK_FALSE(tree.holds_after_events(way));
}

TEST_CASE("what is not there may come") {
    Tree tree;
    auto way = tree.walk("a/x/y/z");
    if (way.error < 0) return;
    CHECK(way.error == ENOENT);
    CHECK(way.watch < 0);
    tree.folder.write("a/x", "");
    CHECK_FALSE(tree.holds_after_events(way));
    way = tree.walk("a/x/y/z");
    CHECK(way.error == ENOTDIR);
    CHECK(tree.holds_after_events(way));
    unlink(tree.at("a/x").c_str());
    CHECK_FALSE(tree.holds_after_events(way));
}

TEST_CASE("links and .. are part of the way") {
    Tree tree;
    auto way = tree.walk("l/b/../../far");
    if (way.error < 0) return;
    CHECK(way.error == 0);
    CHECK(tree.holds_after_events(way));
    CHECK(way.watch == tree.walk("a/b").watch);
    fs::remove(tree.at("l"));
    fs::create_symlink("nothing", tree.at("l"));
    CHECK_FALSE(tree.holds_after_events(way));
    CHECK(tree.walk("l/b").error == ENOENT);
    way = tree.walk("far");
    fs::rename(tree.at("a"), tree.at("moved"));
    CHECK_FALSE(tree.holds_after_events(way));
    fs::create_symlink("round", tree.at("round"));
    CHECK(tree.walk("round/x").error < 0);
    chmod(tree.folder.path().c_str(), 01777);
    static_cast<void>(tree.names.take_gone());
    CHECK(tree.walk("l/b").error < 0);
}

TEST_CASE("a file system that may ask others is not walked") {
    WatchedNames names;
    PathWalks walks(names);
    CHECK(walks.to_directory({}, "/proc/self").error < 0);
    CHECK(walks.to_directory({}, "/sys/kernel").error < 0);
}

TEST_CASE("only what somebody was told is said to be gone") {
    Tree tree;
    const auto way = tree.walk("a");
    if (way.error < 0) return;
    const uint32_t told = tree.names.id_of(way.watch, "told");
    const uint32_t other = tree.names.id_of(way.watch, "other");
    tree.names.note_told(told);
    tree.folder.write("a/other", "");
    CHECK(tree.names.take_gone().none());
    CHECK_FALSE(tree.names.holds(other));
    tree.folder.write("a/TOLD", "");  // as in a directory that folds cases
    CHECK(tree.names.take_gone().ids == std::vector<uint32_t>{told});
    const uint32_t foreign = tree.names.id_of(way.watch, "ü");
    tree.folder.write("a/any", "");
    static_cast<void>(tree.names.take_gone());
    CHECK_FALSE(tree.names.holds(foreign));
    const uint32_t last = tree.names.make_id();
    tree.names.clear();
    CHECK_FALSE(tree.names.holds(last));
    CHECK(tree.names.make_id() > last);
}

}  // namespace gpr::home
