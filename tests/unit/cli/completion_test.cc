#include "tools/completion.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tools/command_line.h"
#include "tools/manual_page.h"

namespace gpr {
namespace {

const CompletionSources sources{[] {
                                    return std::vector<Candidate>{{"local", ""}, {"big", ""}};
                                },
                                [] {
                                    return std::vector<Candidate>{{"cuda", ""}, {"kvm", ""}};
                                },
                                [] {
                                    return std::vector<Candidate>{{"4711", "train"}};
                                }};

std::vector<std::string> words_after(const Words& words) {
    std::vector<std::string> found;
    for (const Candidate& each : complete(words, sources).candidates) found.push_back(each.word);
    return found;
}

using List = std::vector<std::string>;

TEST_CASE("commands are completed, also behind help") {
    CHECK(words_after({"th"}) == List{"threads"});
    CHECK(words_after({"help", "sys"}) == List{"syscalls"});
    CHECK(words_after({"nonsense", ""}).empty());
    CHECK(words_after({""}).size() > all_commands().size());
}

TEST_CASE("options are completed, and so are their values") {
    CHECK(words_after({"exec", "--spl"}) == List{"--split"});
    CHECK(words_after({"run", "--rec"}) == List{"--record="});
    CHECK(words_after({"exec", "--acceptor", "b"}) == List{"big"});
    CHECK(words_after({"exec", "--log-level", "w"}) == List{"warning"});
    CHECK(words_after({"acceptor", "--listen", ""}).empty());
    CHECK(complete({"exec", "--token-file", ""}, sources).files);
    CHECK(complete({"exec", "--record=/tmp/"}, sources).files);
    CHECK_FALSE(complete({"exec", "--split", ""}, sources).files);
}

TEST_CASE("split rules are completed in two steps") {
    CHECK(words_after({"exec", "--split", "pr"}) == List{"profile:"});
    CHECK(words_after({"exec", "--split", "profile:"}) == List{"profile:cuda", "profile:kvm"});
    CHECK(words_after({"exec", "--split", "sock:ine"}) == List{"sock:inet", "sock:inet6"});
    CHECK(words_after({"exec", "--split", "sys:unam"}) == List{"sys:uname"});
    CHECK(words_after({"exec", "--split", "sys:mmap"}).empty());
}

TEST_CASE("what follows a program is the program's business") {
    CHECK(complete({"exec", "--split", "all", "x"}, sources).program == 3);
    CHECK(complete({"exec", "--", "xz", "--th"}, sources).program == 2);
    CHECK_FALSE(complete({"exec", "--split", "all"}, sources).program);
}

TEST_CASE("sessions and acceptors are completed where they are wanted") {
    CHECK(words_after({"threads", ""}) == List{"4711"});
    CHECK(words_after({"kill", "4711", "4"}) == List{"4711"});
    CHECK(words_after({"top", ""}) == List{"local", "big", "4711"});
    CHECK(words_after({"health", "l"}) == List{"local"});
    CHECK(words_after({"token", ""}) == List{"new"});
    CHECK(words_after({"syscalls", ""}).empty());
}

TEST_CASE("a manual page has all that the command's help has") {
    for (const Command& command : all_commands()) {
        const CommandSpec& spec = command.spec();
        const std::string page = manual_page(command);
        CAPTURE(command.name);
        CHECK(page.starts_with(".TH GPR\\-"));
        CHECK(std::ranges::count(page, '\n') > 10);
        for (const Setting& setting : spec.settings) {
            std::string name(setting.name);
            for (size_t at = 0; (at = name.find('-', at)) != std::string::npos; at += 2) {
                name.insert(at, 1, '\\');
            }
            CHECK(page.find("\\-\\-" + name) != std::string::npos);
        }
    }
}

}  // namespace
}  // namespace gpr
