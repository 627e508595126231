// Libraries of programs that are made for the test, and what rules make of them.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/unit/cli/elf_maker.h"
#include "tests/unit/temporary_folder.h"
#include "tools/explanation.h"

using gpr::ElfMaker;
using gpr::ElfWish;
using gpr::Library;
using gpr::SplitKind;
using gpr::SplitRule;
using Place = gpr::Library::Place;

namespace {

struct Host {
    gpr::TemporaryFolder folder;
    std::string root = std::filesystem::canonical(folder.path()).string();

    [[nodiscard]] std::string at(const std::string& name) const { return root + "/" + name; }

    std::string elf(const std::string& name, const ElfWish& wish) const {
        return folder.write(name, ElfMaker(wish).bytes(), 0755);
    }

    [[nodiscard]] std::vector<Library> libraries(const std::string& program,
                                                 const gpr::LinkerSettings& linker = {},
                                                 std::vector<gpr::RemotePath> paths = {}) const {
        return gpr::libraries_of(at(program), gpr::read_elf(at(program)).value(),
                                 gpr::PathRules(std::move(paths)), linker);
    }

    // "name=path below the root", or "name=-".
    [[nodiscard]] std::vector<std::string> found(const std::string& program,
                                                 const gpr::LinkerSettings& linker = {}) const {
        std::vector<std::string> names;
        for (const Library& library : libraries(program, linker)) {
            const bool nowhere = library.place == Place::nowhere;
            names.push_back(library.name + "=" +
                            (nowhere ? "-" : library.path.substr(root.size() + 1)));
        }
        return names;
    }
};

using Names = std::vector<std::string>;

gpr::Explanation explain(const std::vector<SplitRule>& rules, const std::string& program,
                         const Names& arguments = {}) {
    return gpr::explain(rules, gpr::follow_program(program, "/usr/bin:/bin").value(), arguments,
                        {});
}

const gpr::ExplainedFile& code(const gpr::Explanation& explanation, std::string_view end) {
    for (const gpr::ExplainedFile& file : explanation.code) {
        if (std::string_view(file.path).ends_with(end)) return file;
    }
    throw std::runtime_error("not among the code");
}

std::string why_not(const std::string& program) {
    const auto chain = gpr::follow_program(program, "/usr/bin:/bin");
    return chain ? "" : chain.error().message();
}

bool has(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("an ELF file tells what it needs") {
    const Host host;
    const auto elf = gpr::read_elf(host.elf("p", {{"liba.so", "libb.so"}, "/run", "/r", "/ld"}));
    REQUIRE(elf);
    CHECK(elf->needed == Names{"liba.so", "libb.so"});
    CHECK(elf->runpath == "/run");
    CHECK(elf->rpath.empty());  // a RUNPATH beside it outdoes it
    CHECK(elf->interpreter == "/ld");
    CHECK(gpr::read_elf(host.elf("q", {{}, "", "/r"}))->rpath == "/r");
    // The one of this very test.
    CHECK(has(gpr::read_elf("/proc/self/exe")->interpreter, "ld-linux"));
}

TEST_CASE("damaged and foreign files are no programs, and do no harm") {
    const Host host;
    const std::string whole = ElfMaker({{"liba.so"}, "/run", "", "/ld"}).bytes();
    for (size_t size = 0; size < whole.size(); size++) {
        (void)gpr::read_elf(host.folder.write("cut", whole.substr(0, size)));
    }
    for (size_t i = 0; i < whole.size(); i++) {
        std::string changed = whole;
        changed[i] = static_cast<char>(~changed[i]);
        (void)gpr::read_elf(host.folder.write("changed", changed));
    }
    ElfWish arm;
    arm.machine = EM_AARCH64;
    CHECK(has(gpr::read_elf(host.elf("arm", arm)).error().message(), "another machine"));
    CHECK(gpr::read_elf(host.folder.write("text", "hello")).error().code == ENOEXEC);
    CHECK(gpr::read_elf(host.at("absent")).error().code == ENOENT);
}

TEST_CASE("libraries are found where ld.so finds them, breadth first") {
    const Host host;
    host.elf("bin/p", {{"liba.so", "libb.so", "libgone.so"}, "$ORIGIN/../lib:${ORIGIN}/more"});
    host.elf("lib/liba.so", {{"libc1.so"}, "$ORIGIN/deep"});
    host.elf("bin/more/libb.so", {});
    host.elf("lib/deep/libc1.so", {{"liba.so"}});
    CHECK(host.found("bin/p") == Names{"liba.so=bin/../lib/liba.so", "libb.so=bin/more/libb.so",
                                       "libgone.so=-", "libc1.so=lib/deep/libc1.so"});
    CHECK(host.libraries("bin/p").back().needed_by == host.at("bin/../lib/liba.so"));
}

TEST_CASE("the order of places") {
    const Host host;
    for (const char* folder : {"r", "l", "u", "c"}) host.elf(fmt::format("{}/liba.so", folder), {});
    const gpr::LinkerSettings linker{host.at("l"), "", {{"liba.so", host.at("c/liba.so")}}};
    host.elf("both", {{"liba.so"}, host.at("u"), host.at("r")});
    CHECK(host.found("both", linker) == Names{"liba.so=l/liba.so"});
    CHECK(host.found("both") == Names{"liba.so=u/liba.so"});
    host.elf("old", {{"liba.so"}, "", host.at("r")});
    CHECK(host.found("old", linker) == Names{"liba.so=r/liba.so"});
    host.elf("bare", {{"liba.so"}});
    CHECK(host.found("bare", {"", "", linker.cache}) == Names{"liba.so=c/liba.so"});
    host.elf("strict", {{"liba.so"}, "", "", "", EM_X86_64, true});
    CHECK(host.found("strict", {"", "", linker.cache}) == Names{"liba.so=-"});
    // What is for another machine is passed by.
    ElfWish arm;
    arm.machine = EM_AARCH64;
    host.elf("u/liba.so", arm);
    CHECK(host.found("both", {"", "", linker.cache}) == Names{"liba.so=c/liba.so"});
}

TEST_CASE("an RPATH holds for what is loaded in turn, a RUNPATH does not") {
    const Host host;
    host.elf("lib/liba.so", {{"libb.so"}});
    host.elf("lib/libb.so", {});
    host.elf("rpath", {{"liba.so"}, "", host.at("lib")});
    CHECK(host.found("rpath") == Names{"liba.so=lib/liba.so", "libb.so=lib/libb.so"});
    host.elf("runpath", {{"liba.so"}, host.at("lib")});
    CHECK(host.found("runpath") == Names{"liba.so=lib/liba.so", "libb.so=-"});
}

TEST_CASE("what is preloaded, and the linker itself, are among them") {
    const Host host;
    host.elf("ld", {});
    host.elf("x.so", {});
    // The linker has another name where libraries need it.
    std::filesystem::create_symlink("ld", host.at("libld.so"));
    host.elf("p", {{"libld.so"}, host.root, "", host.at("ld")});
    CHECK(host.found("p", {"", host.at("x.so"), {}}) ==
          Names{host.at("ld") + "=ld", host.at("x.so") + "=x.so"});
}

TEST_CASE("path rules decide whose file it is") {
    const Host host;
    host.elf("p", {{"liba.so", "libb.so"}, host.at("one") + ":" + host.at("two")});
    host.elf("two/liba.so", {});
    auto places = [&](const gpr::RemotePath& rule) {
        std::vector<Place> result;
        for (const Library& library : host.libraries("p", {}, {rule})) {
            result.push_back(library.place);
        }
        return result;
    };
    CHECK(places({host.at("none")}) == std::vector{Place::here, Place::nowhere});
    CHECK(places({host.at("two")}) == std::vector{Place::acceptor, Place::acceptor});
    CHECK(places({host.at("one/*"), "", true}) == std::vector{Place::here, Place::perhaps});
    CHECK(places({host.at("two/*"), "", true}) == std::vector{Place::here, Place::perhaps});
}

TEST_CASE("the linker's cache") {
    const gpr::LinkerCache here = gpr::read_linker_cache();
    for (const auto& [name, path] : here) CHECK_FALSE((name.empty() || path.front() != '/'));
    std::string bytes = "glibc-ld.so.cache1.1";
    auto number = [&](uint32_t value) {
        bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    };
    for (uint32_t value : {3u, 99u, 0u, 0u, 0u, 0u, 0u}) number(value);
    const std::string text("liba.so\0/lib/liba.so\0", 21);
    const uint32_t strings = 48 + 3 * 24;
    for (uint32_t flags : {0x0303u, 0x0003u, 0x0303u}) {
        const bool last = bytes.size() > 48 + 24;
        for (uint32_t value : {flags, strings, last ? 0xfffffff0u : strings + 8, 0u, 0u, 0u}) {
            number(value);
        }
    }
    bytes += text;
    CHECK(gpr::parse_linker_cache("older format" + bytes) ==
          gpr::LinkerCache{{"liba.so", "/lib/liba.so"}});
    for (size_t size = 0; size < bytes.size(); size++) {
        (void)gpr::parse_linker_cache(std::string_view(bytes).substr(0, size));
    }
    CHECK(gpr::parse_linker_cache("").empty());
}

TEST_CASE("scripts are followed to what runs") {
    const Host host;
    const std::string program = host.elf("bin/real", {});
    const std::string script = host.folder.write("s", "#! " + program + " -x\n", 0755);
    const std::string outer = host.folder.write("o", "#!" + script + "\n", 0755);
    const auto chain = gpr::follow_program(outer, "");
    REQUIRE(chain);
    CHECK(chain->path == program);
    CHECK(chain->scripts == Names{outer, script});
    const std::string by_env = host.folder.write("e", "#!/usr/bin/env -S A=1 real -v\n", 0755);
    CHECK(gpr::follow_program(by_env, host.at("bin"))->path == program);

    CHECK(has(why_not(host.folder.write("text", "hello\n", 0755)), "no script that names"));
    CHECK(has(why_not(host.folder.write("lost", "#!/no/such\n", 0755)),
              "is a script for '/no/such', which cannot be run"));
    CHECK(has(why_not(host.folder.write("env", "#!/usr/bin/env\n", 0755)), "which cannot be run"));
    CHECK(has(why_not(host.at("absent")), "cannot read"));
    const std::string self = host.at("self");
    CHECK(has(why_not(host.folder.write("self", "#!" + self + "\n", 0755)), "too many scripts"));
}

TEST_CASE("code goes where its rule says, and the rule is named") {
    const Host host;
    const std::string program = host.elf("p", {{"liba.so", "libb.so"}, "$ORIGIN"});
    host.elf("liba.so", {});
    host.elf("libb.so", {});
    const SplitRule lib{SplitKind::lib, "liba*", "1"};
    const SplitRule idle{SplitKind::lib, "libz*", "1"};
    const auto library = explain({lib, idle}, program);
    CHECK(code(library, "/p").where == "either");
    CHECK(code(library, "liba.so").where == "acceptor");
    CHECK(code(library, "liba.so").why == "lib:liba*");
    CHECK(code(library, "libb.so").where == "either");
    CHECK(library.rules[0].matches.size() == 1);
    CHECK(library.rules[1].matches.empty());
    CHECK(has(library.table(), "lib:libz*  nothing that is known before it runs"));

    const SplitRule kept{SplitKind::home, "libb*", "", 0, "", "mine"};
    const auto whole = explain({{SplitKind::all, "", "1"}, kept}, program);
    CHECK(code(whole, "/p").where == "acceptor");
    CHECK(code(whole, "/p").why == "all");
    CHECK(code(whole, "libb.so").where == "home");
    CHECK(code(whole, "libb.so").why == "home:libb* (profile mine)");

    const auto chaos = explain({{SplitKind::chaos, "7", "1", 7}}, program);
    CHECK(code(chaos, "/p").where == "both");
    CHECK(code(chaos, "/p").why == "chaos:7");
}

TEST_CASE("paths, devices and what is missing") {
    const Host host;
    const std::string program =
        host.elf("p", {{"libcl.so", "libgone.so"}, "$ORIGIN/cl:$ORIGIN/none"});
    const SplitRule cl{SplitKind::missing, host.at("cl/*"), "1"};
    const SplitRule zero{SplitKind::dev, "/dev/zer[o]", "1"};
    const SplitRule all{SplitKind::all, "", "1"};
    const auto with = explain({cl, zero, all}, program, {"-v", "--device=/dev/zero", "/etc"});
    CHECK(code(with, "libcl.so").file_why == "missing:" + host.at("cl/*"));
    CHECK(with.missing.empty());  // libgone.so may be there, too
    REQUIRE(with.arguments.size() == 1);
    CHECK(with.arguments[0].path == "/dev/zero");
    CHECK(with.arguments[0].why == "dev:/dev/zer[o]");
    CHECK(with.rules[1].matches == Names{"/dev/zero"});

    const auto without = explain({all}, program);
    CHECK(without.missing == Names{"libcl.so", "libgone.so"});
    CHECK(code(without, "libcl.so").where == "nowhere");

    const auto json = nlohmann::json::parse(with.json());
    CHECK(json["program"] == program);
    CHECK(json["code"][1]["file_from"] == "missing:" + host.at("cl/*"));
    CHECK(json["rules"][1] == nlohmann::json{{"rule", "dev:/dev/zer[o]"},
                                             {"matches", {"/dev/zero"}},
                                             {"acceptor", "1"}});
    CHECK(nlohmann::json::parse(without.json())["missing"].size() == 2);
}
