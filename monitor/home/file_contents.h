// The contents of programs and libraries, by name: an acceptor that has had a content before shows
// it from its own disk, so its pages do not travel again. docs/decisions/0083-contents-are-kept.md
//
// The digest of a file takes time, so it is made in the background, for later sessions. What an
// acceptor does not have yet it fetches, also for later ones.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "base/raw_bytes.h"
#include "mm/address_space.h"
#include "monitor/home/digest_records.h"
#include "monitor/home/part.h"
#include "monitor/home/remote_node.h"
#include "monitor/tracee/remote_memory_raw.h"
#include "transport/idle_thread.h"

namespace gpr::home {

class FileContents {
public:
    explicit FileContents(Home& home);

    // Gives a read-only private mapping of a file its digest, if that is known. path: of the file,
    // or a link of /proc to it. shown: which file it must be; null: the path is sure to lead to it.
    void name(Mapping& mapping, const std::string& path, const MapsEntry* shown = nullptr);

    void on_new_acceptor(const RemoteNode& node);
    void on_frame(RemoteNode& node, const Frame& frame);

private:
    struct Source {
        std::string path;
        FileVersion file;
    };
    [[nodiscard]] bool any_keeps() const;
    bool hash(const std::string& path, const FileVersion& file);
    void offer(const ContentDigest& digest, Source source);
    static void offer_to(const RemoteNode& node, const ContentDigest& digest, uint64_t size);
    void send_piece(NodeId to, const ContentDigest& digest, const RawBytes& bytes);

    Home& home_;
    DigestRecords records_;
    std::map<ContentDigest, Source> offered_;
    std::set<FileVersion> hashed_;  // or about to be
    unsigned reading_ = 0;          // parts that acceptors wait for
    IdleThread thread_;
};

}  // namespace gpr::home
