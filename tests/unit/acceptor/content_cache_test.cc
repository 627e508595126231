#include "acceptor/cache/content_cache.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>

#include "base/file_text.h"
#include "tests/unit/temporary_folder.h"

using namespace gpr;
namespace fs = std::filesystem;

namespace {

ContentDigest digest_of(const std::string& text) {
    ContentHash hash;
    hash.add(std::as_bytes(std::span(text)));
    return hash.finish();
}

// A content that is like no other, of so many bytes.
std::string content(size_t size, char first) { return first + std::string(size - 1, 'x'); }

std::string read_all(const Fd& file) {
    return file ? text_of("/proc/self/fd/" + std::to_string(file.get())) : "";
}

struct Host {
    TemporaryFolder root;
    std::string folder = root.path() + "/contents";

    Host() { REQUIRE(prepare_content_folder(folder)); }
    [[nodiscard]] ContentCache cache(const std::string& token, uint64_t most = 1 << 30) const {
        auto opened = open_content_folder(folder, token);
        REQUIRE(opened);
        return {std::move(*opened), most};
    }
};

IncomingContent::Verdict finish(IncomingContent& incoming, const std::string& rest) {
    REQUIRE(incoming.append(std::as_bytes(std::span(rest))));
    auto verdict = IncomingContent::Verdict::unfinished;
    while (verdict == IncomingContent::Verdict::unfinished) verdict = incoming.check_some();
    if (verdict == IncomingContent::Verdict::right) CHECK(incoming.keep());
    return verdict;
}

void keep(ContentCache& cache, const std::string& text) {
    auto incoming = cache.receive(digest_of(text), text.size());
    REQUIRE(incoming);
    REQUIRE(finish(*incoming, text) == IncomingContent::Verdict::right);
}

void make_older(const Host& host, const std::string& token, const std::string& text, int hours) {
    const fs::path file = fs::path(host.folder) / ("token-" + token) / hex(digest_of(text));
    fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(hours));
}

}  // namespace

TEST_CASE("a content is there when all of it has come, for sessions with the same token") {
    const Host host;
    const std::string text = content(1'000'000, 'a');
    const auto digest = digest_of(text);
    {
        ContentCache cache = host.cache("one");
        auto incoming = cache.receive(digest, text.size());
        REQUIRE(incoming);
        CHECK(incoming->missing() == text.size());
        REQUIRE(incoming->append(std::as_bytes(std::span(text).first(1000))));
        CHECK(!cache.find(digest));
        CHECK(!cache.receive(digest, text.size()));  // it is being received
    }
    ContentCache cache = host.cache("one");
    auto incoming = cache.receive(digest, text.size());
    REQUIRE(incoming);
    CHECK(incoming->received() == 1000);  // the rest is enough
    CHECK(finish(*incoming, text.substr(1000)) == IncomingContent::Verdict::right);
    CHECK(read_all(cache.find(digest)) == text);
    CHECK(read_all(host.cache("one").find(digest)) == text);
    CHECK(!host.cache("two").find(digest));
    CHECK(!cache.receive(digest, text.size()));  // it is there
}

TEST_CASE("what sessions use of a content adds up until it is here") {
    const Host host;
    const std::string text = content(1000, 'a');
    const auto digest = digest_of(text);
    {
        const ContentCache cache = host.cache("one");
        CHECK(cache.used(digest) == 0);
        cache.note_use(digest, 100);
    }
    ContentCache cache = host.cache("one");
    cache.note_use(digest, 50);
    CHECK(cache.used(digest) == 150);
    CHECK(cache.used(digest_of("another")) == 0);
    CHECK(host.cache("two").used(digest) == 0);
    CHECK_FALSE(cache.has(digest));
    keep(cache, text);
    CHECK(read_all(cache.find(digest)) == text);
    CHECK(cache.used(digest) == 0);
}

TEST_CASE("what is not what it was called is not kept") {
    const Host host;
    ContentCache cache = host.cache("one");
    const auto digest = digest_of("this");
    auto incoming = cache.receive(digest, 4);
    REQUIRE(incoming);
    CHECK(!incoming->append(std::as_bytes(std::span("that it").first(5))));  // too much
    CHECK(finish(*incoming, "that") == IncomingContent::Verdict::wrong);
    CHECK(!cache.find(digest));
    incoming.reset();
    incoming = cache.receive(digest, 4);
    REQUIRE(incoming);
    CHECK(incoming->received() == 0);
    CHECK(finish(*incoming, "this") == IncomingContent::Verdict::right);
}

TEST_CASE("room is made by dropping what was not used for the longest time") {
    const Host host;
    constexpr size_t size = 1 << 20;
    ContentCache cache = host.cache("one", 3 * size + size / 2);
    const std::string a = content(size, 'a'), b = content(size, 'b'), c = content(size, 'c');
    for (const auto& [text, hours] : {std::pair{a, 3}, {b, 2}, {c, 1}}) {
        keep(cache, text);
        make_older(host, "one", text, hours);
    }
    // In a session of its own: in this one it has not been looked for.
    CHECK(host.cache("one").find(digest_of(a)));
    keep(cache, content(size, 'd'));
    CHECK(cache.has(digest_of(a)));
    CHECK(!cache.has(digest_of(b)));
    CHECK(cache.has(digest_of(c)));
    CHECK(!cache.receive(digest_of("e"), 4 * size));  // never fits
    CHECK(!cache.receive(digest_of("e"), 0));
}

TEST_CASE("all tokens share the bound") {
    const Host host;
    constexpr size_t size = 1 << 20;
    ContentCache one = host.cache("one"), two = host.cache("two");
    const std::string a = content(size, 'a'), b = content(size, 'b');
    keep(one, a);
    keep(two, b);
    make_older(host, "two", b, 5);
    prune_contents(host.folder, 2 * size + 65536);
    CHECK(two.has(digest_of(b)));
    prune_contents(host.folder, size + 65536);
    CHECK(one.has(digest_of(a)));
    CHECK(!two.has(digest_of(b)));
}

TEST_CASE("what is coming is not dropped, and what has been checked gets the name") {
    const Host host;
    const std::string text = content(2 << 20, 'a');
    ContentCache cache = host.cache("one");
    auto incoming = cache.receive(digest_of(text), text.size());
    REQUIRE(incoming);
    REQUIRE(incoming->append(std::as_bytes(std::span(text).first(1 << 20))));
    prune_contents(host.folder, 0);
    const fs::path part = fs::path(host.folder) / "token-one" / (hex(digest_of(text)) + ".part");
    CHECK(fs::exists(part));
    // Somebody else drops it nevertheless, and begins anew.
    fs::remove(part);
    auto other = host.cache("one").receive(digest_of(text), text.size());
    const std::string rest = text.substr(1 << 20);
    REQUIRE(incoming->append(std::as_bytes(std::span(rest))));
    auto verdict = IncomingContent::Verdict::unfinished;
    while (verdict == IncomingContent::Verdict::unfinished) verdict = incoming->check_some();
    CHECK(verdict == IncomingContent::Verdict::right);
    CHECK(!incoming->keep());
    CHECK(!cache.find(digest_of(text)));
    CHECK(fs::exists(part));  // the other's
}

TEST_CASE("only contents are dropped") {
    const Host host;
    ContentCache cache = host.cache("one");
    keep(cache, content(1 << 20, 'a'));
    const TemporaryFolder elsewhere;
    const std::string theirs = elsewhere.write(hex(digest_of("b")), "b");
    fs::create_symlink(elsewhere.path(), fs::path(host.folder) / "token-link");
    const fs::path other = fs::path(host.folder) / "other";
    fs::create_directory(other);
    for (const fs::path& folder : {other, fs::path(host.folder) / "token-one"}) {
        std::ofstream(folder / "a-file") << "text";
    }
    std::ofstream(other / hex(digest_of("c"))) << "c";
    prune_contents(host.folder, 0);
    CHECK(!cache.has(digest_of(content(1 << 20, 'a'))));
    CHECK(fs::exists(theirs));
    CHECK(fs::exists(other / "a-file"));
    CHECK(fs::exists(other / hex(digest_of("c"))));
    CHECK(fs::exists(fs::path(host.folder) / "token-one" / "a-file"));
}

TEST_CASE("a token's folder is below the acceptor's, whatever the token is called") {
    const Host host;
    REQUIRE(open_content_folder(host.folder, ".."));
    CHECK(fs::is_directory(fs::path(host.folder) / "token-.."));
}

TEST_CASE("a folder that others can write to is refused") {
    const TemporaryFolder root;
    const std::string folder = root.path() + "/open";
    mkdir(folder.c_str(), 0755);
    chmod(folder.c_str(), 0777);
    const auto refused = prepare_content_folder(folder);
    REQUIRE(!refused);
    CHECK(refused.error().message().find("chmod 700") != std::string::npos);
    CHECK(!prepare_content_folder("/proc/nowhere"));
}
