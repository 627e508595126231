#include "acceptor/worker/contents.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>

#include "acceptor/worker/worker.h"
#include "base/log.h"
#include "monitor/node/anonymous_memory.h"
#include "syscall/park.h"

namespace gpr::worker {

namespace {

using namespace std::chrono_literals;

constexpr size_t most_offers = 4096;
constexpr uint32_t piece_bytes = 512u << 10;  // the link cuts it into pieces
// The link, and both supervisors, are for the program: what is fetched for later sessions takes a
// quarter of the time, and a sixteenth while the program makes calls or waits for pages.
constexpr int pause_share = 3, pause_share_if_busy = 15;
constexpr auto least_pause = 1ms;
// Of larger files it must have had so large a part: libraries of many GB are mapped by programs
// that use none of them here.
constexpr uint64_t always_fetched_bytes = 4u << 20;
constexpr uint64_t least_used_part = 16;
// What sessions have had of it, one after another: then it has travelled so often that it is
// cheaper to keep it.
constexpr uint64_t least_used_by_all = 4;
constexpr std::chrono::milliseconds longest_between_looks = 2s;

bool may_show(const Mapping& m) {
    const bool plain = !m.shared && !m.trapped && !m.follows && !m.anchored;
    return m.digest && plain && m.birth == directory_node && !(m.prot & PROT_WRITE);
}

}  // namespace

Contents::Contents(Worker& worker) : worker_(worker), thread_(worker.loop) {}

Task<int64_t> Contents::open_there(Fragment& fragment, const ContentDigest& digest) {
    Fd file = cache_->find(digest);
    if (!file) co_return -ENOENT;
    const uint64_t number = ++last_given_;
    given_.emplace(number, std::move(file));
    const int64_t fd = co_await fragment.executor().call(gpr_park_number, gpr_park_content, number);
    given_.erase(number);
    co_return fd;
}

void Contents::give(RemoteProcess& process, const Notification& n) {
    auto given = given_.find(n.args[1]);
    if (given == given_.end()) {
        process.notifier->reply_error(n.id, ENOENT);
    } else {
        process.notifier->reply_with_fd(n.id, given->second.get());
    }
}

Task<void> Contents::show(std::shared_ptr<Fragment> fragment, std::vector<Mapping> mappings) {
    if (!cache_) co_return;
    std::erase_if(mappings, [](const Mapping& m) { return !may_show(m); });
    std::ranges::stable_sort(mappings, {}, [](const Mapping& m) { return *m.digest; });
    StubThread& executor = fragment->executor();
    for (auto first = mappings.begin(); first != mappings.end();) {
        const ContentDigest digest = *first->digest;
        auto last = std::find_if(first, mappings.end(),
                                 [&](const Mapping& m) { return *m.digest != digest; });
        const int64_t fd = co_await open_there(*fragment, digest);
        if (fd < 0) {
            first = last;
            continue;
        }
        std::vector<Call> calls;
        for (auto m = first; m != last; ++m) {
            calls.push_back(
                {SYS_mmap,
                 {m->range.begin.value, m->range.size(), static_cast<uint64_t>(m->prot),
                  MAP_PRIVATE | MAP_FIXED, static_cast<uint64_t>(fd), m->content_offset},
                 0});
        }
        calls.push_back({SYS_close, {static_cast<uint64_t>(fd)}, 0});
        co_await executor.run(calls);
        for (size_t i = 0; first != last; ++first, ++i) {
            if (calls[i].result != static_cast<int64_t>(first->range.begin.value)) {
                // The kernel may have taken away what was there.
                co_await map_anonymous(executor, first->range, first->prot);
                continue;
            }
            fragment->space.for_each(first->range, [&](Mapping& m) {
                m.backing = Backing::native_file;
                m.registered = false;
            });
            worker_.counts.shown_contents++;
        }
    }
}

Task<void> Contents::give_up(std::shared_ptr<Fragment> fragment, Range range) {
    std::vector<Address> shown;
    fragment->space.for_each(range, [&](const Mapping& m) {
        const bool is_home = m.birth == directory_node && !m.shared && !m.anchored;
        if (m.backing == Backing::native_file && is_home) shown.push_back(m.range.begin);
    });
    for (Address at : shown) {
        const Mapping* m = fragment->space.find(at);
        if (!m || m->backing != Backing::native_file) continue;
        const Range whole = m->range;
        const int prot = m->prot & ~PROT_WRITE;
        auto alone = co_await worker_.pager.ranges.lock(fragment, whole);
        auto replaced = co_await replace_in_use(*fragment, whole, prot, "cannot give up a content");
        if (!replaced && fragment->executor().dead()) co_return;
        if (!replaced) co_return worker_.link.close(replaced.error().message());
        fragment->space.for_each(whole, [](Mapping& piece) {
            piece.backing = Backing::anonymous;
            piece.registered = true;
        });
        const std::vector<Range> all{whole};
        co_await drop_pages(*fragment, all);
    }
}

void Contents::on_frame(const Frame& frame) {
    auto message = frame->session().getContent();
    if (!cache_) return;
    if (message.isPiece()) return on_piece(frame);
    if (!message.isOffer() || !can_fetch_ || offers_.size() >= most_offers) return;
    auto offer = message.getOffer();
    const auto digest = digest_of_bytes(message.getDigest());
    if (!digest || cache_->has(*digest)) return;
    offers_.emplace(offer, *digest);
    const bool at_once = is_worth_fetching(offer, *digest);
    if (!incoming_ && (at_once || !looks_later_)) fetch_next();
}

// Whatever is used of it in this session.
bool Contents::is_worth_fetching(uint64_t size, const ContentDigest& digest) const {
    return size <= always_fetched_bytes || cache_->used(digest) >= size / least_used_by_all;
}

void Contents::fetch_next() {
    incoming_.reset();
    while (!incoming_ && !offers_.empty()) {
        const auto next = next_offer();
        if (next == offers_.end()) return look_later();
        const auto [size, digest] = *next;
        offers_.erase(next);
        incoming_ = cache_->receive(digest, size);
    }
    if (incoming_) incoming_->missing() > 0 ? ask() : check();
}

Contents::Offers::iterator Contents::next_offer() const {
    const auto worth = std::ranges::find_if(
        offers_, [&](const auto& offer) { return is_worth_fetching(offer.first, offer.second); });
    if (worth != offers_.end()) return worth;
    const Uses came = bytes_that_came();
    return std::ranges::find_if(offers_, [&](const auto& offer) {
        const auto [size, digest] = offer;
        const auto used = came.find(digest);
        return used != came.end() && used->second >= size / least_used_part;
    });
}

Contents::Uses Contents::bytes_that_came_to(const RemoteProcess& process) {
    constexpr size_t most_at_once = 64;
    Uses its;
    if (!process.fragment) return its;
    for (const auto& [begin, m] : process.fragment->space.all()) {
        if (!may_show(m) || m.backing != Backing::anonymous) continue;
        for (Address at = m.range.begin; at < m.range.end;) {
            const auto touched = process.fragment->touched({at, m.range.end}, most_at_once);
            for (const Range present : touched.ranges) its[*m.digest] += present.size();
            at = touched.end;
        }
    }
    return its;
}

// In processes that share them, those of one.
Contents::Uses Contents::bytes_that_came() const {
    Uses most;
    for (const auto& [pid, process] : worker_.processes) {
        for (const auto& [digest, bytes] : bytes_that_came_to(*process)) {
            most[digest] = std::max(most[digest], bytes);
        }
    }
    return most;
}

// A program often uses most of a library as it ends, when all that was registered is taken back:
// then it is too late to fetch it in this session.
void Contents::note_use(const RemoteProcess& process) {
    if (!cache_ || offers_.empty()) return;
    const Uses its = bytes_that_came_to(process);
    for (const auto& [size, digest] : offers_) {
        const auto used = its.find(digest);
        if (used == its.end() || size <= always_fetched_bytes) continue;
        uint64_t bytes = used->second;
        if (bytes >= size / least_used_part) bytes = std::max(bytes, size / least_used_by_all);
        uint64_t& noted = noted_[digest];
        if (bytes > noted) cache_->note_use(digest, bytes - noted);
        noted = std::max(noted, bytes);
    }
}

void Contents::look_later() {
    if (std::exchange(looks_later_, true)) return;
    worker_.loop.after(between_looks_, [this] {
        looks_later_ = false;
        between_looks_ = std::min(2 * between_looks_, longest_between_looks);
        if (!incoming_) fetch_next();
    });
}

void Contents::ask() {
    FrameBuilder frame;
    auto content = frame.session().initContent();
    const ContentDigest& digest = incoming_->digest();
    content.setDigest(kj::ArrayPtr<const uint8_t>(digest.data(), digest.size()));
    asked_bytes_ = static_cast<uint32_t>(std::min<uint64_t>(piece_bytes, incoming_->missing()));
    asked_ = std::chrono::steady_clock::now();
    work_before_ = work_so_far();
    auto wanted = content.initWanted();
    wanted.setOffset(incoming_->received());
    wanted.setBytes(asked_bytes_);
    worker_.link.send(frame, Priority::urgent);
}

void Contents::on_piece(const Frame& frame) {
    const auto digest = digest_of_bytes(frame->session().getContent().getDigest());
    if (!incoming_ || asked_bytes_ == 0 || digest != incoming_->digest()) return;
    const auto raw = frame->raw();
    if (raw.size() != std::exchange(asked_bytes_, 0u)) return fetch_next();
    const auto took = std::chrono::steady_clock::now() - asked_;
    const auto pause = took * (work_so_far() == work_before_ ? pause_share : pause_share_if_busy);
    auto bytes = std::make_shared<std::vector<std::byte>>(raw.begin(), raw.end());
    auto appended = std::make_shared<bool>(false);
    const bool begun = thread_.run(
        [to = incoming_, bytes, appended](const auto&) { *appended = to->append(*bytes); },
        [this, appended, pause] {
            if (!*appended) return fetch_next();
            const bool more = incoming_->missing() > 0;
            worker_.loop.after(std::max<std::chrono::nanoseconds>(least_pause, pause),
                               [this, more] { more ? ask() : check(); });
        });
    if (!begun) give_up_fetching();
}

uint64_t Contents::work_so_far() const {
    const NodeCounts counts = worker_.counts_so_far();
    const CallCounts& calls = counts.calls;
    return counts.pages.faults + counts.pages.pages_out + calls.home + calls.native +
           calls.delegated + calls.remembered;
}

// There can be no thread.
void Contents::give_up_fetching() {
    can_fetch_ = false;
    offers_.clear();
    incoming_.reset();
}

void Contents::check() {
    using enum IncomingContent::Verdict;
    auto verdict = std::make_shared<IncomingContent::Verdict>(unfinished);
    const bool begun = thread_.run(
        [content = incoming_, verdict](const IdleThread::Stopped& stopped) {
            while (*verdict == unfinished && !stopped) *verdict = content->check_some();
        },
        [this, verdict] { conclude(*verdict); });
    if (!begun) give_up_fetching();
}

void Contents::conclude(IncomingContent::Verdict verdict) {
    if (verdict == IncomingContent::Verdict::right) {
        worker_.loop.synchronise(incoming_->fd(), [this](int result) { keep(result); });
    } else {
        spdlog::debug("content {} is not what home has called it", short_name());
        fetch_next();
    }
}

void Contents::keep(int synchronised) {
    const bool kept = synchronised == 0 && incoming_->keep();
    spdlog::debug("content {} is {}kept", short_name(), kept ? "" : "not ");
    fetch_next();
}

std::string Contents::short_name() const { return hex(incoming_->digest()).substr(0, 12); }

}  // namespace gpr::worker
