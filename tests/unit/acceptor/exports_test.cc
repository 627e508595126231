// What sessions may see of a file tree made for the test.
#include "acceptor/box/exports.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "tests/unit/temporary_folder.h"

namespace gpr {
namespace {

namespace fs = std::filesystem;

struct Tree {
    TemporaryFolder folder;
    std::string root = fs::canonical(folder.path()).string();

    Tree() {
        for (const char* file : {"open/a.so", "open/b.so", "open/deep/c", "closed/secret", "dev/x0",
                                 "dev/x1", "dev/y"}) {
            (void)folder.write(file, "content");
        }
        fs::create_symlink(root + "/closed/secret", root + "/open/leak");
        fs::create_directory_symlink(root + "/open/deep", root + "/open/inner");
    }

    [[nodiscard]] std::string at(const std::string& name) const { return root + name; }

    std::vector<std::string> hidden;  // with the root

    [[nodiscard]] Result<std::vector<SandboxMount>> plan(std::vector<RemotePath> rules) const {
        for (RemotePath& rule : rules) {
            rule.glob = at(rule.glob);
            if (!rule.target.empty()) rule.target = at(rule.target);
        }
        return plan_mounts(rules, {at("/open"), at("/dev/x*")}, hidden);
    }

    // Places, without the root; sources that differ behind a colon.
    [[nodiscard]] std::vector<std::string> shown(const std::vector<RemotePath>& rules) const {
        std::vector<std::string> names;
        const auto mounts = plan(rules);
        REQUIRE(mounts);
        for (const SandboxMount& mount : *mounts) {
            std::string name = mount.place.substr(root.size());
            if (mount.source != mount.place) name += ":" + mount.source.substr(root.size());
            names.push_back(std::move(name));
        }
        return names;
    }

    [[nodiscard]] std::string refusal(const RemotePath& rule) const {
        const auto mounts = plan({rule});
        return mounts ? "" : mounts.error().message();
    }
};

using Names = std::vector<std::string>;

bool has(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

TEST_CASE("what is exported is shown, and all below it is too") {
    const Tree tree;
    CHECK(tree.shown({{"/open/a.so"}}) == Names{"/open/a.so"});
    CHECK(tree.shown({{"/open"}}) == Names{"/open"});
    CHECK(tree.shown({{"/open/deep/c"}}) == Names{"/open/deep/c"});
    CHECK(tree.shown({{"/open/inner"}}) == Names{"/open/inner"});
    CHECK(tree.shown({}).empty());
}

TEST_CASE("what is not exported is refused, with the way to get it") {
    const Tree tree;
    const std::string why = tree.refusal({"/closed/secret"});
    CHECK(has(why, "path rule '" + tree.at("/closed/secret") + "'"));
    CHECK(has(why, "gpr acceptor --export " + tree.at("/closed/secret")));
    CHECK(has(tree.refusal({"/closed"}), "does not show"));
    // The beginning of an exported name is not that name.
    (void)tree.folder.write("opening/a", "content");
    CHECK(has(tree.refusal({"/opening/a"}), "does not show"));
}

TEST_CASE("a link shows no more than what it leads to may") {
    const Tree tree;
    CHECK(has(tree.refusal({"/open/leak"}), "does not show " + tree.at("/closed/secret")));
    CHECK(has(tree.refusal({"/open/new", "/open/leak"}), "does not show"));
    fs::create_directory_symlink(tree.at("/closed"), tree.at("/open/door"));
    CHECK(has(tree.refusal({"/open/door/secret"}), "does not show " + tree.at("/closed/secret")));
    CHECK(has(tree.refusal({"/open/door/s*"}), "does not show " + tree.at("/closed")));
}

TEST_CASE("a detour by .. is no absolute path") {
    const Tree tree;
    CHECK(has(tree.refusal({"/open/../closed/secret"}), "is not an absolute path"));
    CHECK_FALSE(plan_mounts({{"open"}}, {"/"}));
    CHECK_FALSE(
        plan_mounts({{tree.at("/open/x"), tree.at("/open/../closed/secret")}}, {tree.at("/open")}));
    CHECK_FALSE(plan_mounts({{tree.at("/open/..")}}, {tree.at("/open")}));
}

TEST_CASE("a wildcard in an exported directory shows all of the directory") {
    const Tree tree;
    // What matches may come later.
    CHECK(tree.shown({{"/open/*.so"}}) == Names{"/open"});
    CHECK(tree.shown({{"/open/none*"}}) == Names{"/open"});
    CHECK(tree.shown({{"/open/none/x*"}}).empty());
}

TEST_CASE("a wildcard elsewhere shows what matches now and is exported") {
    const Tree tree;
    CHECK(tree.shown({{"/dev/x*"}}) == Names{"/dev/x0", "/dev/x1"});
    CHECK(tree.shown({{"/dev/z*"}}).empty());
    CHECK(has(tree.refusal({"/dev/*"}), "does not show " + tree.at("/dev/y")));
}

TEST_CASE("what is not here is an error, unless it need not be") {
    const Tree tree;
    CHECK(has(tree.refusal({"/open/none"}), "this acceptor has no " + tree.at("/open/none")));
    CHECK(tree.shown({{"/open/none", "", true}}).empty());
    CHECK(has(tree.refusal({"/open/a.so", "/open/none"}), "has no"));
}

TEST_CASE("a target is shown in another place") {
    const Tree tree;
    CHECK(tree.shown({{"/closed/here", "/open/deep"}}) == Names{"/closed/here:/open/deep"});
    CHECK(has(tree.refusal({"/open/here", "/closed"}), "does not show"));
}

TEST_CASE("what a directory shows is not shown again, but where it differs") {
    const Tree tree;
    CHECK(tree.shown({{"/open/a.so"}, {"/open"}, {"/open/deep"}}) == Names{"/open"});
    CHECK(tree.shown({{"/open/deep", "/open/a.so"}, {"/open"}}) ==
          Names{"/open", "/open/deep:/open/a.so"});
}

TEST_CASE("what is hidden from a session is not shown, however it is asked for") {
    Tree tree;
    tree.hidden = {tree.at("/dev/x0"), tree.at("/open/deep/c")};
    CHECK(tree.shown({{"/dev/x*"}}) == Names{"/dev/x1"});
    CHECK(has(tree.refusal({"/dev/x0"}), "the session does not get " + tree.at("/dev/x0")));
    CHECK(has(tree.refusal({"/open/inner/c"}), "does not get"));
    CHECK(tree.shown({{"/open/deep"}}).empty());
    // Of a folder with something hidden only what matches, or piece by piece; no way around.
    CHECK(tree.shown({{"/open/*.so"}}) == Names{"/open/a.so", "/open/b.so"});
    CHECK(tree.shown({{"/open"}}) == Names{"/open/a.so", "/open/b.so"});
    tree.hidden = {tree.at("/dev/x0")};
    CHECK(tree.shown({{"/open"}}) == Names{"/open"});
}

TEST_CASE("files of users are not exported by default") {
    for (const char* path : {"/etc/shadow", "/root", "/var/lib", "/etc/ssl/private", "/dev/mem"}) {
        CAPTURE(path);
        if (fs::exists(path)) CHECK_FALSE(plan_mounts({{path}}, default_exports()));
    }
    CHECK(plan_mounts({{"/usr/lib"}}, default_exports()));
}

}  // namespace

TEST_CASE("a profile stands by where all of it can be shown and some of it is there") {
    const Tree tree;
    auto standing_by = [&](std::vector<RemotePath> rules) {
        for (RemotePath& rule : rules) {
            rule.glob = tree.at(rule.glob);
            rule.standby = "p";
        }
        rules.push_back({tree.at("/nowhere")});  // no part of it
        FolderNames folders;
        return standby_profiles(rules, {tree.at("/open"), tree.at("/dev/x*")}, tree.hidden,
                                folders) == Names{"p"};
    };
    CHECK(standing_by({{"/open/a.so"}}));
    CHECK(standing_by({{"/open/a.so"}, {"/open/nothing*"}, {"/open/nothing", "", true}}));
    CHECK_FALSE(standing_by({{"/open/a.so"}, {"/open/nothing"}}));
    CHECK_FALSE(standing_by({{"/open/a.so"}, {"/closed/secret"}}));
    CHECK_FALSE(standing_by({{"/open/a.so", "", true}}));  // it has nothing of its own
    CHECK_FALSE(standing_by({{"/dev/nothing*"}, {"/open", "", true}}));
    CHECK_FALSE(standing_by({{"/open/nothing*"}, {"/open", "", true}}));
}

TEST_CASE("of a profile's libraries one is enough") {
    FolderNames folders;
    read_ahead(folders);
    const auto standing_by = [&](const std::vector<std::string>& globs) {
        std::vector<RemotePath> rules;
        for (const std::string& glob : globs) {
            rules.push_back({"/usr/lib/x86_64-linux-gnu/" + glob, "", false, "p"});
        }
        return standby_profiles(rules, {"/usr"}, {}, folders) == Names{"p"};
    };
    CHECK(standing_by({"libc.so*"}));
    CHECK(standing_by({"no-such-library*", "lib[bc].so.?"}));
    CHECK_FALSE(standing_by({"no-such-library*", "libc.so*.not"}));
}

TEST_CASE("names in a folder are read again once it has changed") {
    using namespace std::chrono_literals;
    const TemporaryFolder folder;
    FolderNames folders;
    const auto names = [&] {
        Names sorted = folders.of(folder.path());
        std::sort(sorted.begin(), sorted.end());
        return sorted;
    };
    CHECK(folders.of(folder.path() + "/none").empty());
    CHECK(names().empty());
    (void)folder.write("a", "");
    CHECK(names() == Names{"a"});
    (void)folder.write("b", "");
    CHECK(names() == Names{"a", "b"});
    std::this_thread::sleep_for(4s);  // from now on the time of its last change tells
    CHECK(names() == Names{"a", "b"});
    fs::rename(folder.path() + "/a", folder.path() + "/c");
    CHECK(names() == Names{"b", "c"});
    fs::remove_all(folder.path());
    CHECK(names().empty());
}

}  // namespace gpr
