// Tokens: the only credential. A line of text with a name (safe to log) and a secret (never
// logged).
//
//   gpr1_<id>_<32 secret bytes, base64url>[_<expiry, seconds since 1970>]
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpr {

struct Token {
    std::string id;  // 1..32 of [A-Za-z0-9.-]
    std::array<uint8_t, 32> secret{};
    std::optional<int64_t> expires_at;  // seconds since 1970

    ~Token();  // erases the secret, which must not stay in memory as long as the session

    bool operator==(const Token&) const = default;
    [[nodiscard]] std::string line() const;
    [[nodiscard]] bool expired(int64_t now) const { return expires_at && *expires_at <= now; }
    // Such as "expired 3 days ago".
    [[nodiscard]] std::string expiry_text(int64_t now) const;
};

int64_t now_seconds();

Result<Token> new_token(std::optional<std::chrono::seconds> lifetime = {});
Result<Token> parse_token(std::string_view line);

// A file with one token a line; blank lines and lines that start with # are ignored.
class TokenFile {
public:
    TokenFile() = default;
    explicit TokenFile(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}
    // Fails for a file that others than its owner can read.
    static Result<TokenFile> load(const std::string& path);
    static Result<TokenFile> parse(std::string_view text, const std::string& name);

    [[nodiscard]] const Token* find(std::string_view id) const;
    [[nodiscard]] const std::vector<Token>& tokens() const { return tokens_; }
    // For home: the first token that has not expired.
    [[nodiscard]] Result<Token> first_usable(int64_t now) const;

private:
    std::vector<Token> tokens_;
    std::string name_;
};

}  // namespace gpr
