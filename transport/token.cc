#include "transport/token.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <ctime>

#include "base/fd.h"

namespace gpr {

namespace {

constexpr std::string_view prefix = "gpr1_";
constexpr std::string_view base64url =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr size_t secret_chars = 43;  // 32 bytes without padding
constexpr size_t max_id_chars = 32;
constexpr size_t max_file_bytes = 1u << 20;
constexpr size_t max_tokens = 10'000;

std::string encode_secret(const std::array<uint8_t, 32>& secret) {
    std::string out;
    uint32_t bits = 0;
    int count = 0;
    for (uint8_t byte : secret) {
        bits = bits << 8 | byte;
        for (count += 8; count >= 6; count -= 6) out += base64url[bits >> (count - 6) & 63];
    }
    out += base64url[bits << (6 - count) & 63];  // 256 bits leave 4 over
    return out;
}

bool decode_secret(std::string_view text, std::array<uint8_t, 32>& secret) {
    uint32_t bits = 0;
    int count = 0;
    size_t filled = 0;
    for (char c : text) {
        size_t value = base64url.find(c);
        if (value == std::string_view::npos) return false;
        bits = bits << 6 | static_cast<uint32_t>(value);
        count += 6;
        if (count >= 8) {
            count -= 8;
            secret[filled++] = static_cast<uint8_t>(bits >> count);
        }
    }
    return (bits & 3) == 0;  // so that a secret has only one text
}

bool good_id(std::string_view id) {
    return !id.empty() && id.size() <= max_id_chars &&
           std::all_of(id.begin(), id.end(),
                       [](unsigned char c) { return std::isalnum(c) || c == '.' || c == '-'; });
}

std::string_view trimmed(std::string_view line) {
    constexpr std::string_view blank = " \t\r";
    size_t first = line.find_first_not_of(blank);
    if (first == std::string_view::npos) return {};
    return line.substr(first, line.find_last_not_of(blank) - first + 1);
}

Failure not_a_token(const char* why) {
    return fail(fmt::format("not a token ({}); 'gpr token new' prints one", why));
}

// A file of secrets, erased when it goes out of scope. Never reallocated, since that would leave a
// copy.
struct SecretText {
    explicit SecretText(size_t most) { text.reserve(most); }
    SecretText(const SecretText&) = delete;
    SecretText& operator=(const SecretText&) = delete;
    ~SecretText() { OPENSSL_cleanse(text.data(), text.size()); }

    std::string text;
};

}  // namespace

Token::~Token() { OPENSSL_cleanse(secret.data(), secret.size()); }

int64_t now_seconds() { return static_cast<int64_t>(::time(nullptr)); }

std::string Token::line() const {
    std::string text = fmt::format("{}{}_{}", prefix, id, encode_secret(secret));
    if (expires_at) text += fmt::format("_{}", *expires_at);
    return text;
}

std::string Token::expiry_text(int64_t now) const {
    if (!expires_at) return "never expires";
    int64_t ago = now - *expires_at;
    int64_t span = ago < 0 ? -ago : ago;
    auto count = [](int64_t n, const char* unit) {
        return fmt::format("{} {}{}", n, unit, n == 1 ? "" : "s");
    };
    std::string text = span >= 86'400  ? count(span / 86'400, "day")
                       : span >= 3'600 ? count(span / 3'600, "hour")
                       : span >= 60    ? count(span / 60, "minute")
                                       : count(span, "second");
    return ago < 0 ? fmt::format("expires in {}", text) : fmt::format("expired {} ago", text);
}

Result<Token> new_token(std::optional<std::chrono::seconds> lifetime) {
    // 32 characters, no two alike.
    constexpr std::string_view id_chars = "abcdefghijkmnpqrstuvwxyz23456789";
    Token token;
    std::array<uint8_t, 8> id{};
    if (RAND_bytes(token.secret.data(), static_cast<int>(token.secret.size())) != 1 ||
        RAND_bytes(id.data(), static_cast<int>(id.size())) != 1) {
        return fail("the system gives no random numbers for a token");
    }
    for (uint8_t byte : id) token.id += id_chars[byte % id_chars.size()];
    if (lifetime) token.expires_at = now_seconds() + lifetime->count();
    return token;
}

Result<Token> parse_token(std::string_view line) {
    line = trimmed(line);
    if (!line.starts_with(prefix)) return not_a_token("it does not start with gpr1_");
    line.remove_prefix(prefix.size());
    size_t id_end = line.find('_');
    if (id_end == std::string_view::npos || !good_id(line.substr(0, id_end))) {
        return not_a_token("its name is missing or malformed");
    }
    Token token;
    token.id = line.substr(0, id_end);
    line.remove_prefix(id_end + 1);
    if (line.size() < secret_chars || !decode_secret(line.substr(0, secret_chars), token.secret)) {
        return not_a_token("its secret is cut short or damaged");
    }
    line.remove_prefix(secret_chars);
    if (line.empty()) return token;
    int64_t expiry = 0;
    auto [end, error] = std::from_chars(line.data() + 1, line.data() + line.size(), expiry);
    if (line[0] != '_' || error != std::errc{} || end != line.data() + line.size() || expiry < 0) {
        return not_a_token("there is something behind its secret");
    }
    token.expires_at = expiry;
    return token;
}

Result<TokenFile> TokenFile::load(const std::string& path) {
    Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (!file) return fail(errno, fmt::format("cannot open token file {}", path));
    struct stat status {};
    if (::fstat(file.get(), &status) != 0) return fail(errno, fmt::format("cannot stat {}", path));
    if (!S_ISREG(status.st_mode)) return fail(fmt::format("token file {} is not a file", path));
    if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        return fail(fmt::format("token file {} is open to others (mode {:03o}); run 'chmod 600 {}'",
                                path, status.st_mode & 0777, path));
    }
    SecretText secret(max_file_bytes + 1);
    std::string& text = secret.text;
    text.resize(std::min(static_cast<size_t>(status.st_size), max_file_bytes) + 1);
    size_t size = 0;
    for (;;) {
        if (size == text.size()) text.resize(std::min(2 * size, max_file_bytes + 1));
        ssize_t got = ::read(file.get(), text.data() + size, text.size() - size);
        if (got < 0) return fail(errno, fmt::format("cannot read token file {}", path));
        if (got == 0) break;
        size += static_cast<size_t>(got);
        if (size > max_file_bytes) {
            return fail(fmt::format("token file {} is longer than 1 MiB", path));
        }
    }
    return parse(std::string_view(text).substr(0, size), path);
}

Result<TokenFile> TokenFile::parse(std::string_view text, const std::string& name) {
    TokenFile file;
    file.name_ = name;
    for (int number = 1; !text.empty(); ++number) {
        size_t end = text.find('\n');
        auto line = trimmed(text.substr(0, end));
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        if (line.empty() || line[0] == '#') continue;
        auto token = parse_token(line);
        // The line itself may be a damaged secret, so it is never shown.
        if (!token) return fail(fmt::format("{} line {}: {}", name, number, token.error().what));
        if (file.find(token->id)) {
            return fail(
                fmt::format("{} line {}: token {} is there twice", name, number, token->id));
        }
        if (file.tokens_.size() == max_tokens) {
            return fail(fmt::format("{} holds more than {} tokens", name, max_tokens));
        }
        file.tokens_.push_back(std::move(*token));
    }
    if (file.tokens_.empty()) {
        return fail(
            fmt::format("{} holds no token; 'gpr token new' on the acceptor prints one", name));
    }
    return file;
}

const Token* TokenFile::find(std::string_view id) const {
    for (const Token& token : tokens_) {
        if (token.id == id) return &token;
    }
    return nullptr;
}

Result<Token> TokenFile::first_usable(int64_t now) const {
    for (const Token& token : tokens_) {
        if (!token.expired(now)) return token;
    }
    if (tokens_.empty()) return fail("no token; 'gpr token new' on the acceptor prints one");
    return fail(fmt::format("token {} {}; get a new one with 'gpr token new' on the acceptor",
                            tokens_.front().id, tokens_.front().expiry_text(now)));
}

}  // namespace gpr
