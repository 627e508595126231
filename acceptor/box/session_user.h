// Which user of the acceptor's host the processes of a session are: one who is nobody, and in each
// session another, so that what the kernel counts and allows by user is the session's alone.
#pragma once

#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace gpr {

// User and group ids of this host that sessions take one of each.
struct UserIds {
    uint32_t first = 0, count = 0;
    [[nodiscard]] bool none() const { return count == 0; }
    bool operator==(const UserIds&) const = default;
};

// Above what distributions, systemd (up to 1879048191, and its foreign ids from 2147352576 on) and
// sssd (up to 2000200000) give to anybody.
inline constexpr UserIds default_user_ids{2'100'000'000, 65'536};

// "FIRST-LAST", or "none".
Result<UserIds> parse_user_ids(const std::string& text);
// Fails if one of them is somebody's, by passwd, group, subuid or subgid in the folder.
Result<> check_nobody_has(const UserIds& ids, const std::string& folder = "/etc");

class SessionUser {
public:
    // One that no session of this host has, of whichever acceptor.
    static Result<SessionUser> take(const UserIds& ids, const std::string& list = "/run/gpr.users");
    SessionUser() = default;  // that of the worker

    [[nodiscard]] uint32_t id() const { return id_; }       // 0: that of the worker
    [[nodiscard]] int lock() const { return lock_.get(); }  // who has a copy has the id

private:
    uint32_t id_ = 0;
    Fd lock_;
};

}  // namespace gpr
