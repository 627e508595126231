// The user of the acceptor's host that a session's processes run as: an id that nobody else uses,
// and a different one in each session, so that what the kernel counts and allows per user is the
// session's alone.
#pragma once

#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace gpr {

// A range of user and group ids of this host, of which each session takes one.
struct UserIds {
    uint32_t first = 0, count = 0;
    [[nodiscard]] bool none() const { return count == 0; }
    bool operator==(const UserIds&) const = default;
};

// Above the ids that distributions, systemd (up to 1879048191, and its foreign ids from 2147352576
// on) and sssd (up to 2000200000) assign.
inline constexpr UserIds default_user_ids{2'100'000'000, 65'536};

// Parses "FIRST-LAST" or "none".
Result<UserIds> parse_user_ids(const std::string& text);
// Fails if one of them is in use according to passwd, group, subuid or subgid in the folder.
Result<> check_nobody_has(const UserIds& ids, const std::string& folder = "/etc");

class SessionUser {
public:
    // Takes an id that no other session of this host has, of any acceptor.
    static Result<SessionUser> take(const UserIds& ids, const std::string& list = "/run/gpr.users");
    SessionUser() = default;  // the worker's user

    [[nodiscard]] uint32_t id() const { return id_; }       // 0: the worker's user
    [[nodiscard]] int lock() const { return lock_.get(); }  // whoever has a copy has the id

private:
    uint32_t id_ = 0;
    Fd lock_;
};

}  // namespace gpr
