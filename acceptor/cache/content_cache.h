// Contents of files that sessions with one token have had before, in a folder of this host's
// disk. A file there is called by the digest of its content, which is checked before it gets that
// name; so what one session has brought can be shown to another. Sessions with other tokens have
// other folders: else who knows the digest of a file could read the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "base/content_digest.h"
#include "base/fd.h"
#include "base/result.h"
#include "transport/content_hash.h"

namespace gpr {

// A content that is coming, in order. What has come is kept if the session ends before the rest
// has: the next one goes on there.
class IncomingContent {
public:
    IncomingContent(const Fd& folder, Fd file, const ContentDigest& digest, uint64_t size,
                    uint64_t received)
        : folder_(folder),
          file_(std::move(file)),
          digest_(digest),
          size_(size),
          received_(received) {}

    [[nodiscard]] const ContentDigest& digest() const { return digest_; }
    [[nodiscard]] uint64_t received() const { return received_; }
    [[nodiscard]] uint64_t missing() const { return size_ - received_; }
    // False: it cannot be kept, such as on a full disk.
    [[nodiscard]] bool append(std::span<const std::byte> bytes);

    // When nothing is missing: reads a part of it, for some milliseconds. `wrong`: it was not
    // what it was called, and is gone.
    enum class Verdict : uint8_t { unfinished, right, wrong };
    [[nodiscard]] Verdict check_some();
    [[nodiscard]] int fd() const { return file_.get(); }
    // From now on the content is in the cache. It must be right, and on the disk: a name that lasts
    // longer than the content would never be checked again.
    [[nodiscard]] bool keep();

private:
    void drop() const;

    const Fd& folder_;
    Fd file_;
    ContentDigest digest_;
    uint64_t size_, received_, checked_ = 0;
    ContentHash hash_;
};

class ContentCache {
public:
    // folder: of one token, which nobody but root can write to. most: bytes.
    ContentCache(Fd folder, uint64_t most) : folder_(std::move(folder)), most_(most) {}

    // Open for reading; none if the content is not here.
    [[nodiscard]] Fd find(const ContentDigest& digest) const;
    [[nodiscard]] bool has(const ContentDigest& digest) const;

    // What sessions have had from home of a content that is not here, in bytes: the sum is kept,
    // and dropped like a content.
    void note_use(const ContentDigest& digest, uint64_t bytes) const;
    [[nodiscard]] uint64_t used(const ContentDigest& digest) const;

    // Makes room by dropping contents that have not been used for the longest time. Null if it is
    // too large, or another session is receiving it. It must not outlive the cache.
    [[nodiscard]] std::unique_ptr<IncomingContent> receive(const ContentDigest& digest,
                                                           uint64_t size);

private:
    Fd folder_;
    uint64_t most_;
    mutable std::set<ContentDigest> used_;  // whose time of use has been noted in this session
};

// The folder of a token in the acceptor's, made if there is none.
Result<Fd> open_content_folder(const std::string& folder, const std::string& token_id);
// Makes the acceptor's folder if there is none. Fails if it is of no use, and says why.
Result<> prepare_content_folder(const std::string& folder);
// Drops what has not been used for the longest time, of all tokens, until no more than `most` bytes
// are left. Contents that are being shown or received stay usable for who does that.
void prune_contents(const std::string& folder, uint64_t most);

}  // namespace gpr
