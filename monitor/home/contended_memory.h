// Shared memory that processes outside of the session use, too
// (docs/decisions/0029-external-sharers.md). Only sessions whose program runs at the acceptor as a
// whole need this; mixed sessions use all shared memory at home.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "mm/page_protocol.h"
#include "monitor/home/external_sharers.h"
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
    Task<void> meet_external_sharers(bool tells);
    void note_given(HomeProcess& process, const ForwardedCall& call);
    void share_with(const HomeProcess& sharer);
    void meet_those_at_rest(const HomeProcess& process);
    // nullptr until the program shares memory, and in a mixed session, which does not need them.
    [[nodiscard]] ExternalSharers* external_sharers() const { return external_sharers_.get(); }

private:
    using FileId = std::pair<uint64_t, uint64_t>;  // device, inode

    ExternalSharers& watching();
    void forget_made(const ExternalSharers::News& news);
    Task<void> look_for_external_sharers();

    Home& home_;
    std::unique_ptr<ExternalSharers> external_sharers_;
    std::set<FileId> given_;      // files that were passed to external sharers
    std::set<ObjectId> touched_;  // acceptors may have pages of these
    bool all_looked_for_ = true;
    // memfds that the program has made and not mapped yet, and nobody else has opened.
    std::map<FileId, ExternalSharers::Watched> made_;
};

}  // namespace gpr::home
