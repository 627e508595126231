// Shared memory that processes outside of the session use, too (docs/decisions/0029-outsiders.md).
// Only sessions whose program runs at the acceptor as a whole need this; mixed sessions use all
// shared memory at home.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "mm/page_protocol.h"
#include "monitor/home/outsiders.h"
#include "monitor/home/part.h"

namespace gpr {
struct ForwardedCall;
struct SharedFile;
}  // namespace gpr

namespace gpr::home {

class ContendedMemory {
public:
    explicit ContendedMemory(Home& home) : home_(home) {}

    void begin_watching(SharedFile& file, const std::string& mapped_as);
    void note_made(HomeProcess& process, int fd);
    void choose_node(SharedFile& file);
    void note_request(ObjectId object);
    Task<void> meet_outsiders(bool tells);
    void note_given(HomeProcess& process, const ForwardedCall& call);
    void share_with(const HomeProcess& outsider);
    // nullptr in a mixed session, which does not need them.
    [[nodiscard]] Outsiders* outsiders() const { return outsiders_.get(); }

private:
    using FileId = std::pair<uint64_t, uint64_t>;  // device, inode

    Outsiders& watching();
    void forget_made(const Outsiders::News& news);
    Task<void> look_for_outsiders();

    Home& home_;
    std::unique_ptr<Outsiders> outsiders_;
    std::set<FileId> given_;      // files that were passed to outsiders
    std::set<ObjectId> touched_;  // an acceptor has asked for pages since home had all of it
    bool all_looked_for_ = true;
    // memfds that the program has made and not mapped yet, and nobody else has opened.
    std::map<FileId, Outsiders::Watched> made_;
};

}  // namespace gpr::home
