#include "mm/directory_log.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/result.h"
#include "mm/page_event_fields.h"

namespace gpr {

namespace {

// At the start of the memory; the check covers the fields after it. Segments of equal size follow.
struct Header {
    char magic[8];
    uint64_t seed = 0;
    uint64_t segment_bytes = 0;
    uint64_t check = 0;
};
constexpr char magic[8] = {'g', 'p', 'r', 'd', 'i', 'r', '0', '3'};
constexpr uint64_t segment_count = 4;

// A segment begins with one word, so that it can be changed atomically: the bytes used after it (32
// bits), its number (24), and a checksum of these bytes (8). All zeros: never begun.
constexpr uint64_t word_bytes = sizeof(uint64_t);

uint8_t fold(uint64_t number_and_used) {
    uint8_t folded = 0;
    for (; number_and_used != 0; number_and_used >>= 8) {
        folded ^= static_cast<uint8_t>(number_and_used);
    }
    return folded;
}

uint64_t make_word(uint32_t number, uint64_t used) {
    const uint64_t both = (uint64_t{number} & 0xffffff) << 32 | used;
    return both | uint64_t{fold(both)} << 56;
}

// FNV-1a: two inputs of equal length that differ in one byte always have different checksums.
uint32_t check_of(std::span<const std::byte> bytes, uint32_t before) {
    for (std::byte b : bytes) before = (before ^ std::to_integer<uint32_t>(b)) * 16777619U;
    return before;
}

uint32_t first_check(uint64_t seed, uint32_t number) {
    return check_of(std::as_bytes(std::span(&number, 1)),
                    check_of(std::as_bytes(std::span(&seed, 1)), 2166136261U));
}

uint32_t check_of(const Header& header) {
    return check_of(std::as_bytes(std::span(&header, 1)).first(offsetof(Header, check)),
                    2166136261U);
}

// How a segment's first record begins.
enum class Start : uint8_t {
    gap,      // some events before it are not in the log
    follows,  // it continues the segment before
    ended,    // the directory's state is too large: nothing more is recorded
};

}  // namespace

DirectoryLog::DirectoryLog(std::span<std::byte> memory, uint64_t seed)
    : memory_(memory),
      segment_bytes_((memory.size() - sizeof(Header)) / segment_count / word_bytes * word_bytes) {
    GPR_ASSERT(memory.size() >= least_bytes && segment_bytes_ <= UINT32_MAX);
    Header header{{}, seed, segment_bytes_, 0};
    std::memcpy(header.magic, magic, sizeof magic);
    header.check = check_of(header);
    std::memcpy(memory_.data(), &header, sizeof header);
}

void DirectoryLog::record(PageDirectory& directory) {
    directory_ = &directory;
    directory.watch([this](const DirectoryEvent& event) { add(event); });
}

void DirectoryLog::add(const DirectoryEvent& event) {
    if (ended_) return;
    const bool is_full = number_ == 0 || gap_ || used_ > segment_bytes_ / 4 * 3;
    const bool is_input = !std::holds_alternative<directory_event::Decided>(event);
    if (is_full && is_input && directory_->is_drained()) begin_segment();
    if (ended_ || gap_) return;
    scratch_.clear();
    CompactWriter(scratch_).put(event);
    if (append(scratch_)) {
        commit();
    } else {
        gap_ = true;
    }
}

void DirectoryLog::begin_segment() {
    const std::vector<std::byte> state = directory_->save();
    // Otherwise most of each segment would be state, with few events.
    ended_ = state.size() > segment_bytes_ / 2;
    const Start start = ended_ ? Start::ended : gap_ || number_ == 0 ? Start::gap : Start::follows;
    uint64_t seed = 0;
    std::memcpy(&seed, memory_.data() + offsetof(Header, seed), sizeof seed);
    gap_ = false;
    used_ = 0;
    check_ = first_check(seed, ++number_);
    set_word(0);  // invalidate the oldest before overwriting it
    scratch_.assign(1, static_cast<std::byte>(start));
    if (!ended_) scratch_.insert(scratch_.end(), state.begin(), state.end());
    append(scratch_);
    commit();
}

// Appends length, bytes, check.
bool DirectoryLog::append(std::span<const std::byte> payload) {
    std::vector<std::byte> length;
    CompactWriter(length).number(payload.size());
    if (used_ + length.size() + payload.size() + sizeof check_ > segment_bytes_ - word_bytes) {
        return false;
    }
    check_ = check_of(payload, check_of(length, check_));
    std::byte* to = segment() + word_bytes + used_;
    to = std::copy(length.begin(), length.end(), to);
    to = std::copy(payload.begin(), payload.end(), to);
    std::memcpy(to, &check_, sizeof check_);
    used_ += length.size() + payload.size() + sizeof check_;
    return true;
}

uint64_t DirectoryLog::extent() const {
    if (number_ == 0) return sizeof(Header);
    if (number_ > segment_count) return memory_.size();
    return sizeof(Header) + (number_ - 1) * segment_bytes_ + word_bytes + used_;
}

std::byte* DirectoryLog::segment() {
    return memory_.data() + sizeof(Header) + (number_ - 1) % segment_count * segment_bytes_;
}

void DirectoryLog::set_word(uint64_t word) {
    std::atomic_ref(*reinterpret_cast<uint64_t*>(segment())).store(word, std::memory_order_release);
}

void DirectoryLog::commit() { set_word(make_word(number_, used_)); }

namespace {

struct Segment {
    uint32_t number = 0;
    std::span<const std::byte> used;
};

class Replayer {
public:
    Replayer(std::span<const std::byte> memory, PageDirectory& directory,
             const std::function<void(const DirectoryEvent&)>& seen)
        : memory_(memory), directory_(directory), seen_(seen) {}

    DirectoryReplay run() {
        if (auto done = all(); !done) result_.problem = done.error().message();
        directory_.watch({});
        return std::move(result_);
    }

private:
    Result<> all();
    Result<> find_segments();
    Result<> one(const Segment& segment);
    Result<> start(const Segment& segment, std::span<const std::byte> payload);
    Result<> step(std::span<const std::byte> payload);
    Result<> decide(const directory_event::Decided& recorded, std::span<const std::byte> payload);

    std::span<const std::byte> memory_;
    PageDirectory& directory_;
    const std::function<void(const DirectoryEvent&)>& seen_;
    std::vector<Segment> segments_;
    DirectoryReplay result_;
};

Result<> Replayer::all() {
    GPR_CHECK(find_segments());
    if (segments_.empty()) return fail("nothing was recorded");
    for (const Segment& segment : segments_) GPR_CHECK(one(segment));
    return {};
}

Result<> Replayer::find_segments() {
    Header header;
    if (memory_.size() < sizeof header) return fail("this is no record of a directory");
    std::memcpy(&header, memory_.data(), sizeof header);
    if (std::memcmp(header.magic, magic, sizeof magic) != 0) {
        return fail("this is no record of a directory");
    }
    if (header.check != check_of(header)) return fail("the record's header is damaged");
    if (header.segment_bytes % word_bytes != 0 || header.segment_bytes < word_bytes) {
        return fail("the record's header is wrong");
    }
    result_.seed = header.seed;
    for (uint64_t i = 0; i < segment_count; ++i) {
        const uint64_t at = sizeof header + i * header.segment_bytes;
        if (at + word_bytes > memory_.size()) break;  // never begun, and cut off
        uint64_t word = 0;
        std::memcpy(&word, memory_.data() + at, sizeof word);
        if (word == 0) continue;
        const auto used = static_cast<uint32_t>(word);
        const auto number = static_cast<uint32_t>(word >> 32 & 0xffffff);
        if (word != make_word(number, used) || number == 0 ||
            used > std::min(header.segment_bytes, memory_.size() - at) - word_bytes) {
            return fail(fmt::format("the beginning of segment {} is damaged", i));
        }
        segments_.push_back({number, memory_.subspan(at + word_bytes, used)});
    }
    std::sort(segments_.begin(), segments_.end(),
              [](const Segment& a, const Segment& b) { return a.number < b.number; });
    return {};
}

Result<> Replayer::one(const Segment& segment) {
    ++result_.segments;
    uint32_t check = first_check(result_.seed, segment.number);
    std::span<const std::byte> left = segment.used;
    for (uint64_t record = 0; !left.empty(); ++record) {
        CompactReader head(left);
        const uint64_t size = head.number();
        const size_t length = left.size() - head.left();
        if (!head.ok() || size > head.left() || sizeof check > head.left() - size) {
            return fail(fmt::format("record {} of segment {} is damaged", record, segment.number));
        }
        const auto payload = left.subspan(length, size);
        check = check_of(left.first(length + size), check);
        if (std::memcmp(payload.data() + size, &check, sizeof check) != 0) {
            return fail(fmt::format("record {} of segment {} is damaged", record, segment.number));
        }
        GPR_CHECK(record == 0 ? start(segment, payload) : step(payload));
        left = left.subspan(length + size + sizeof check);
    }
    return {};
}

Result<> Replayer::start(const Segment& segment, std::span<const std::byte> payload) {
    const auto start = payload.empty() ? Start::gap : static_cast<Start>(payload.front());
    if (start == Start::ended) return fail("what the directory knew became too much to record");
    const auto state = payload.subspan(std::min<size_t>(1, payload.size()));
    const bool is_first = segment.number == segments_.front().number;
    if (!is_first && start == Start::follows) {
        if (!directory_.is_drained()) return fail("the directory decided more than was recorded");
        if (!std::ranges::equal(directory_.save(), state)) {
            return fail(fmt::format("the directory's state at the beginning of segment {} differs",
                                    segment.number));
        }
        return {};
    }
    if (!directory_.load(state)) return fail("a directory's state cannot be read");
    return {};
}

Result<> Replayer::step(std::span<const std::byte> payload) {
    CompactReader in(payload);
    DirectoryEvent event;
    in.get(event);
    if (!in.ok() || !in.at_end()) return fail("an event cannot be read");
    if (seen_) seen_(event);
    if (const auto* decided = std::get_if<directory_event::Decided>(&event)) {
        return decide(*decided, payload);
    }
    ++result_.events;
    directory_.apply(std::move(event));
    return {};
}

Result<> Replayer::decide(const directory_event::Decided& recorded,
                          std::span<const std::byte> payload) {
    std::vector<std::byte> bytes;
    directory_.watch([&](const DirectoryEvent& event) {
        CompactWriter(bytes).put(event);
        result_.replayed = std::get<directory_event::Decided>(event);
    });
    std::vector<Action> actions;
    directory_.drain(actions);
    directory_.watch({});
    if (std::ranges::equal(bytes, payload)) {
        result_.decisions += recorded.decisions.size();
        result_.replayed = {};
        return {};
    }
    result_.recorded = recorded;
    return fail(fmt::format("after event {} the directory decides otherwise", result_.events));
}

}  // namespace

DirectoryReplay replay(std::span<const std::byte> memory, PageDirectory& directory,
                       const std::function<void(const DirectoryEvent&)>& seen) {
    return Replayer(memory, directory, seen).run();
}

}  // namespace gpr
