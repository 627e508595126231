// The names in folders of this host. A folder is read again only after it has changed, so that many
// patterns cost one reading, and a worker that waits for its session can read in advance.
#pragma once

#include <sys/stat.h>

#include <map>
#include <string>
#include <vector>

namespace gpr {

class FolderNames {
public:
    // In no order; none if there is no such folder. For file systems that note when a folder was
    // changed, so not for /proc. Valid until the next call.
    const std::vector<std::string>& of(const std::string& folder);

private:
    struct Known {
        struct stat as_read {};
        bool is_settled = false;  // a later change has another time
        std::vector<std::string> names;
    };
    std::map<std::string, Known> known_;
};

}  // namespace gpr
