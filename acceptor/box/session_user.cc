#include "acceptor/box/session_user.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <fstream>
#include <limits>
#include <sstream>
#include <vector>

namespace gpr {
namespace {

// (uid_t)-1 is no user, and some programs treat ids as signed.
constexpr uint64_t end_of_ids = std::numeric_limits<int32_t>::max();

template <class Number>
bool parse_number(const std::string& text, Number& number) {
    const auto end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, number);
    return parsed.ec == std::errc() && parsed.ptr == end && !text.empty();
}

std::vector<std::string> fields_of(const std::string& line) {
    std::vector<std::string> fields;
    std::istringstream in(line);
    for (std::string field; std::getline(in, field, ':');) fields.push_back(field);
    return fields;
}

}  // namespace

Result<UserIds> parse_user_ids(const std::string& text) {
    if (text == "none") return UserIds{};
    const auto dash = text.find('-');
    uint32_t first = 0, last = 0;
    const bool good = dash != std::string::npos && parse_number(text.substr(0, dash), first) &&
                      parse_number(text.substr(dash + 1), last) && first > 0 && last >= first &&
                      last < end_of_ids;
    if (!good) {
        return fail(fmt::format("--uid-range wants FIRST-LAST, such as {}-{}, or none; not '{}'",
                                default_user_ids.first,
                                default_user_ids.first + default_user_ids.count - 1, text));
    }
    return UserIds{first, last - first + 1};
}

Result<> check_nobody_has(const UserIds& ids, const std::string& folder) {
    struct Place {
        const char* file;
        size_t first, count;  // which fields of a line; count of 0: a single id
    };
    for (const Place& place : {Place{"passwd", 2, 0}, Place{"group", 2, 0}, Place{"subuid", 1, 2},
                               Place{"subgid", 1, 2}}) {
        const auto path = fmt::format("{}/{}", folder, place.file);
        std::ifstream in(path);
        for (std::string line; std::getline(in, line);) {
            const auto fields = fields_of(line);
            uint64_t first = 0, count = 1;
            if (fields.size() <= std::max(place.first, place.count)) continue;
            if (!parse_number(fields[place.first], first)) continue;
            if (place.count != 0 && !parse_number(fields[place.count], count)) continue;
            if (first >= uint64_t{ids.first} + ids.count || first + count <= ids.first) continue;
            return fail(
                fmt::format("ids {}-{} are for sessions, but '{}' of {} has some of them; give "
                            "others with --uid-range FIRST-LAST",
                            ids.first, ids.first + ids.count - 1, fields[0], path));
        }
    }
    return {};
}

// Takes a lock of one byte for the id, which ends with the last copy of its descriptor.
Result<SessionUser> SessionUser::take(const UserIds& ids, const std::string& list) {
    SessionUser user;
    if (ids.none()) return user;
    user.lock_ = Fd(open(list.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!user.lock_) {
        return fail(errno, fmt::format("open {}, where sessions lock their user ids", list));
    }
    const auto begin = static_cast<uint32_t>(getpid()) % ids.count;
    for (uint32_t i = 0; i < ids.count; ++i) {
        const uint32_t id = ids.first + (begin + i) % ids.count;
        struct flock lock {};
        lock.l_type = F_WRLCK;
        lock.l_whence = SEEK_SET;
        lock.l_start = id;
        lock.l_len = 1;
        if (fcntl(user.lock_.get(), F_OFD_SETLK, &lock) == 0) {
            user.id_ = id;
            return user;
        }
        if (errno != EAGAIN && errno != EACCES) return fail(errno, "lock a user id in " + list);
    }
    return fail(
        fmt::format("all {} user ids for sessions are taken; give the acceptor more with "
                    "--uid-range",
                    ids.count));
}

}  // namespace gpr
