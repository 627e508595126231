#include "transport/token.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <set>

using namespace gpr;

namespace {
constexpr const char* good = "gpr1_abc_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";

struct TemporaryFile {
    std::string path;
    TemporaryFile(const std::string& text, mode_t mode) {
        char name[] = "/tmp/gpr-token-test-XXXXXX";
        int fd = ::mkstemp(name);
        REQUIRE(fd >= 0);
        path = name;
        REQUIRE(::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
        ::fchmod(fd, mode);
        ::close(fd);
    }
    ~TemporaryFile() { ::unlink(path.c_str()); }
};
}  // namespace

TEST_CASE("a token is what its line says") {
    auto token = parse_token(good);
    REQUIRE(token);
    CHECK(token->id == "abc");
    for (uint8_t i = 0; i < 32; ++i) CHECK(token->secret[i] == i);
    CHECK_FALSE(token->expires_at);
    CHECK(token->line() == good);
    CHECK(parse_token(std::string("  ") + good + "_1700000000 \r")->expires_at == 1'700'000'000);
}

TEST_CASE("tokens survive their line") {
    CHECK(rc::check([] {
        Token token;
        token.id = "x" + std::to_string(*rc::gen::arbitrary<uint32_t>());
        for (auto& byte : token.secret) byte = *rc::gen::arbitrary<uint8_t>();
        if (*rc::gen::arbitrary<bool>())
            token.expires_at = *rc::gen::inRange<int64_t>(0, 1LL << 40);
        auto back = parse_token(token.line());
        RC_ASSERT(back.has_value());
        RC_ASSERT(*back == token);
    }));
}

TEST_CASE("new tokens differ and can be told from their line") {
    std::set<std::string> ids;
    for (int i = 0; i < 100; ++i) {
        auto token = new_token(std::chrono::hours(24));
        REQUIRE(token);
        CHECK(parse_token(token->line()) == *token);
        CHECK_FALSE(token->expired(now_seconds()));
        CHECK(token->expired(now_seconds() + 90'000));
        ids.insert(token->id);
    }
    CHECK(ids.size() == 100);
}

TEST_CASE("damaged tokens are refused, and their text is not repeated") {
    for (std::string text :
         {std::string(""), std::string("gpr1"), std::string("gpr1__") + (good + 9),
          std::string("gpr2") + (good + 4), std::string(good).substr(0, 50),
          std::string(good) + "x", std::string(good) + "_", std::string(good) + "_12x",
          std::string(good) + "_-5", std::string("gpr1_a b_") + (good + 9),
          std::string("gpr1_abc_!") + (good + 10),
          std::string("gpr1_abc_") + std::string(42, 'A') + "B"}) {
        CAPTURE(text);
        auto token = parse_token(text);
        REQUIRE_FALSE(token);
        CHECK(token.error().what.find("BgcICQ") == std::string::npos);
    }
}

TEST_CASE("age in words") {
    Token token;
    CHECK(token.expiry_text(5) == "never expires");
    token.expires_at = 1'000'000;
    CHECK(token.expiry_text(1'000'001) == "expired 1 second ago");
    CHECK(token.expiry_text(1'000'000 + 3 * 86'400 + 5) == "expired 3 days ago");
    CHECK(token.expiry_text(1'000'000 - 7'200) == "expires in 2 hours");
    CHECK(token.expired(1'000'000));
    CHECK_FALSE(token.expired(999'999));
}

TEST_CASE("token files: comments, several tokens, errors with line numbers") {
    std::string two =
        "# lab\n\n" + std::string(good) + "\n  gpr1_old_" + std::string(43, 'A') + "_5\n";
    auto file = TokenFile::parse(two, "F");
    REQUIRE(file);
    CHECK(file->tokens().size() == 2);
    CHECK(file->find("old")->expires_at == 5);
    CHECK(file->find("none") == nullptr);
    CHECK(file->first_usable(100)->id == "abc");
    CHECK(TokenFile::parse("#\n", "F").error().what.find("F holds no token") == 0);
    CHECK(TokenFile::parse("#\nhello\n", "F").error().what.find("F line 2:") == 0);
    auto twice = TokenFile::parse(std::string(good) + "\n" + good, "F");
    CHECK(twice.error().what == "F line 2: token abc is there twice");
    auto old = TokenFile::parse("gpr1_old_" + std::string(43, 'A') + "_5", "F");
    CHECK(old->first_usable(5 + 86'400).error().what.find("expired 1 day ago") !=
          std::string::npos);
}

TEST_CASE("a token file others can read is refused with the cure") {
    TemporaryFile mine(good, 0600);
    CHECK(TokenFile::load(mine.path));
    TemporaryFile shared(good, 0644);
    auto error = TokenFile::load(shared.path).error().what;
    CHECK(error == "token file " + shared.path + " is open to others (mode 644); run 'chmod 600 " +
                       shared.path + "'");
    CHECK(TokenFile::load("/nonexistent/token").error().code == ENOENT);
    CHECK_FALSE(TokenFile::load("/tmp"));
    CHECK_FALSE(TokenFile::load("/dev/zero"));
}
