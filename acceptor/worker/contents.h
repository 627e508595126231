// Files of home whose content this host has had before: their mappings show a file of this host,
// and none of their pages travels. docs/decisions/0083-contents-are-kept.md
//
// Home names the content of a mapping by a digest, and offers the contents that it can name.
// Those that are not here yet are fetched slowly, for later sessions; large ones only once a good
// part of them has been used, in this session or in all. What comes is written and checked by a
// thread of its own: no call of the program waits for that.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "acceptor/cache/content_cache.h"
#include "acceptor/worker/part.h"
#include "base/address.h"
#include "mm/address_space.h"
#include "transport/idle_thread.h"

namespace gpr::worker {

class Contents {
public:
    explicit Contents(Worker& worker);

    void keep_in(ContentCache cache) { cache_.emplace(std::move(cache)); }

    // Maps the contents that are here, in place of what is there. Those of `mappings` which it has
    // mapped need no pages from home: Backing::native_file.
    Task<void> show(std::shared_ptr<Fragment> fragment, std::vector<Mapping> mappings);
    // The pages of these may differ from the content from now on, so they come from home.
    Task<void> give_up(std::shared_ptr<Fragment> fragment, Range range);
    // Answers the executor, which asks for a file.
    void give(RemoteProcess& process, const Notification& n);
    // The process is about to end: notes for later sessions what it has had from home.
    void note_use(const RemoteProcess& process);

    void on_frame(const Frame& frame);

private:
    Task<int64_t> open_there(Fragment& fragment, const ContentDigest& digest);
    void on_piece(const Frame& frame);
    // The smallest come first: they come soon, and more of each is used.
    using Offers = std::set<std::pair<uint64_t, ContentDigest>>;
    void fetch_next();
    [[nodiscard]] Offers::iterator next_offer() const;
    // In pages, of each content.
    using Uses = std::map<ContentDigest, uint64_t>;
    [[nodiscard]] static Uses bytes_that_came_to(const RemoteProcess& process);
    [[nodiscard]] Uses bytes_that_came() const;
    [[nodiscard]] bool is_worth_fetching(uint64_t size, const ContentDigest& digest) const;
    void look_later();
    void ask();
    // What the program has had from this worker: calls and pages.
    [[nodiscard]] uint64_t work_so_far() const;
    void give_up_fetching();
    void check();
    void conclude(IncomingContent::Verdict verdict);
    void keep(int synchronised);
    [[nodiscard]] std::string short_name() const;

    Worker& worker_;
    std::optional<ContentCache> cache_;  // none: this acceptor keeps no contents
    std::map<uint64_t, Fd> given_;       // what executors are about to ask for
    uint64_t last_given_ = 0;
    bool can_fetch_ = true;
    Offers offers_;
    Uses noted_;                // in this session
    bool looks_later_ = false;  // whether one of them is to be fetched
    std::chrono::milliseconds between_looks_{100};
    std::shared_ptr<IncomingContent> incoming_;  // the thread's while it has work to do with it
    std::chrono::steady_clock::time_point asked_;
    uint64_t work_before_ = 0;  // when that was asked for
    uint32_t asked_bytes_ = 0;  // 0: nothing has been asked for
    IdleThread thread_;         // ends before what it uses
};

}  // namespace gpr::worker
