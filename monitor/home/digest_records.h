// The digests of files, from session to session: a text file with a line for each. A file is known
// by its device, inode, size and times; who changes its content changes those.
#pragma once

#include <sys/stat.h>

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/content_digest.h"

namespace gpr::home {

struct FileVersion {
    uint64_t device = 0, inode = 0, size = 0;
    int64_t modified_ns = 0, changed_ns = 0;
    auto operator<=>(const FileVersion&) const = default;
};
FileVersion version_of(const struct stat& about);
// Whether the file's times would tell of a change from now on: a change within the same tick of the
// kernel's clock would not show.
bool has_settled(const FileVersion& file, int64_t now_ns);

class DigestRecords {
public:
    // path: of the text file, which need not exist; empty: nothing is kept. It is read when it is
    // first needed.
    explicit DigestRecords(std::string path) : path_(std::move(path)) {}

    [[nodiscard]] std::optional<ContentDigest> find(const FileVersion& file);
    // In the text file as well; without it, in this session only.
    void add(const FileVersion& file, const ContentDigest& digest);

private:
    void load();
    void write_anew();

    std::string path_;
    bool loaded_ = false;
    size_t lines_ = 0;  // of the text file
    std::map<FileVersion, ContentDigest> known_;
};

// $XDG_CACHE_HOME/gpr/digests, or below ~/.cache; empty if there is no such folder of this user.
std::string default_digest_records();

}  // namespace gpr::home
