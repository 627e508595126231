#include "monitor/paging/pager.h"

#include <linux/userfaultfd.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/log.h"

namespace gpr {

namespace {
constexpr uint32_t file_ahead = 15;  // pages: text and data of files are read in order
constexpr uint64_t most_queued_bytes = 256 << 10;

bool is_scratch(Address at) {
    return at.value - GPR_SCRATCH_RW < GPR_SCRATCH_SIZE ||
           at.value - GPR_SCRATCH_RWX < GPR_SCRATCH_SIZE;
}
}  // namespace

Pager::Pager(NodeId self, Loop& loop, PageDirectory* directory, Send send)
    : self_(self),
      loop_(loop),
      directory_(directory),
      send_(std::move(send)),
      agent_(self),
      moved_(loop),
      filled_(loop),
      code_lock_(loop) {}

uint64_t Pager::now() const {
    return static_cast<uint64_t>(Clock::now().time_since_epoch().count());
}

PagerStats Pager::stats() const {
    const AgentStats& s = agent_.stats();
    return {faults_, s.pages_in, s.pages_out, waited_ns_};
}

void Pager::add_fragment(Fragment& fragment) {
    fragments_[&fragment] = loop_.watch(fragment.uffd(), POLLIN,
                                        [this, &fragment](uint32_t) { read_faults(fragment); });
}

void Pager::remove_fragment(Fragment& fragment) {
    fragments_.erase(&fragment);
    std::erase_if(unfilled_, [&](const auto& wish) { return wish.first.first == &fragment; });
    forget_forks(fragment);
}

void Pager::add_object(ObjectId object, NodeId birth) {
    births_[object] = birth;
    agent_.add_object(object, birth);
    if (directory_) directory_->add_object(object, birth);
}

void Pager::discard(const std::vector<Mapping>& pieces) {
    for (const Mapping& m : pieces) {
        spdlog::trace("discard: object {:#x} pages {}+{} at {:#x}", m.object, m.object_page,
                      m.range.size() / page_size, m.range.begin.value);
        if (is_shared(m.object)) continue;  // other mappings may show it
        uint64_t pages = m.range.size() / page_size;
        agent_.drop(m.object, m.object_page, pages);
        if (directory_) directory_->drop(m.object, m.object_page, pages);
    }
    // Not now: the other node must hear of it before it hears of the pages' new life.
    loop_.post([this] { settle(); });
}

void Pager::discard_unmapped(const AddressSpace& space, const std::vector<Mapping>& pieces) {
    discard(pieces);
    for (const Mapping& m : pieces) {
        if (!is_shared(m.object) && !space.shows(m.object)) erase(m.object);
    }
    filled_.notify_all();  // who waits for what is gone looks again
}

void Pager::erase(ObjectId object) {
    births_.erase(object);
    code_read_.erase(code_read_.lower_bound({object, 0}), code_read_.lower_bound({object + 1, 0}));
    agent_.erase_object(object);
    if (directory_) directory_->erase_object(object);
}

void Pager::on_message(NodeId from, Message message) {
    auto* request = std::get_if<Request>(&message.body);
    ObjectId wanted = request ? request->run.object : 0;
    auto shared = request ? shared_.find(wanted) : shared_.end();
    bool writes_file =
        shared != shared_.end() && shared->second.may_lack_room && request->access == Access::write;
    bool is_at_home = shared != shared_.end() && is_used_at_home(wanted);
    if (directory_ && (is_at_home || writes_file)) {
        // No more than a thread there waits for. What is lent when the thread is here again, and
        // writes without a fault, would come back as it was. And holes of files that nobody writes
        // stay holes.
        if (request->must == 0) return;
        request->run.count = std::min(request->run.count, request->must);
        request->have_epochs.resize(std::min<size_t>(request->have_epochs.size(), request->must));
    }
    if (directory_ && request && request->must == 0) {
        read_ahead_.emplace_back(from, std::move(message));
        return serve_read_ahead();
    }
    if (directory_) {
        directory_->on_message(from, std::move(message), now());
    } else {
        agent_.on_message(std::move(message), now());
    }
    settle();
}

// One at a time, after all that is urgent, and not more than the link can take: nobody who waits
// for a page waits behind more than one of these.
void Pager::serve_read_ahead() {
    if (read_ahead_posted_ || read_ahead_.empty()) return;
    if (queued_bytes_ && queued_bytes_() > most_queued_bytes) return;  // on_drained() goes on
    read_ahead_posted_ = true;
    loop_.post([this] {
        read_ahead_posted_ = false;
        if (read_ahead_.empty()) return;
        auto [from, message] = std::move(read_ahead_.front());
        read_ahead_.pop_front();
        directory_->on_message(from, std::move(message), now());
        settle();
        serve_read_ahead();
    });
}

void Pager::on_progress(Tid tid) {
    agent_.on_progress(tid, now());
    settle();
}

void Pager::on_past_progress(Tid tid) {
    agent_.on_past_progress(tid, now());
    settle();
}

void Pager::note_waiting(Tid tid) {
    if (faulting_.empty()) faulting_since_ = now();
    faulting_.insert(tid);
}

void Pager::note_arrival() {
    if (!faulting_.empty()) waited_ns_ += now() - faulting_since_;
    faulting_.clear();
}

void Pager::on_thread_gone(Tid tid) {
    refused_.erase(tid);
    faulting_.erase(tid);
    agent_.on_thread_gone(tid, now());
    settle();
}

void Pager::give_up(Fragment& fragment) {
    fragment.lost = true;
    // Who waits for a page asks again, and gets what on_fault has for it now.
    for (const auto& [begin, m] : fragment.space.all()) {
        if (m.registered) fragment.wake(m.range);
    }
}

void Pager::read_faults(Fragment& fragment) {
    uffd_msg messages[32];
    for (;;) {
        ssize_t got = ::read(fragment.uffd(), messages, sizeof messages);
        if (got <= 0) return;
        size_t count = static_cast<size_t>(got) / sizeof messages[0];
        for (size_t i = 0; i < count; i++) {
            const uffd_msg& m = messages[i];
            if (m.event != UFFD_EVENT_PAGEFAULT) continue;
            uint64_t flags = m.arg.pagefault.flags;
            faults_++;
            on_fault(fragment, {m.arg.pagefault.address & page_mask},
                     (flags & (UFFD_PAGEFAULT_FLAG_WRITE | UFFD_PAGEFAULT_FLAG_WP)) != 0,
                     static_cast<Tid>(m.arg.pagefault.feat.ptid));
        }
        settle();
        if (count < std::size(messages)) return;
    }
}

void Pager::on_fault(Fragment& fragment, Address at, bool write, Tid tid) {
    if (fragment.lost) {
        fragment.poison(at);
        return;
    }
    Mapping* mapping = fragment.space.find(at);
    if (!mapping && is_scratch(at)) {  // whoever touches that must not do so for ever
        fragment.install_zero(at, 1, true);
        return;
    }
    if (!mapping) {
        fragment.wake({at, at + page_size});
        return;
    }
    bool elsewhere = mapping->trapped || mapping->anchored ||
                     (mapping->shared && is_used_at_home(mapping->object));
    if (code_fault_ && (elsewhere || (any_fault_ && any_fault_(fragment, at, write, tid)))) {
        code_fault_(fragment, at, write, tid);
        return;
    }
    ask_for(fragment, *mapping, at, write, tid);
}

void Pager::ask_for(Fragment& fragment, Mapping& m, Address at, bool write, Tid tid) {
    Mapping* mapping = &m;
    note_waiting(tid);
    if (m.program_fills) note_unfilled(fragment, at, write, tid);
    note_missed(m, at, write, tid);
    Fault fault;
    fault.key = mapping->key(at);
    fault.access = write ? Access::write : Access::read;
    fault.tid = tid;
    uint64_t left = (mapping->range.end - at) / page_size - 1;
    if (auto it = shared_.find(fault.key.object); it != shared_.end()) {
        uint64_t pages = it->second.pages;
        left = fault.key.index < pages ? std::min(left, pages - fault.key.index - 1) : 0;
    }
    fault.pages_after = left;
    fault.pages_before = (at - mapping->range.begin) / page_size;
    fault.ahead = mapping->file ? file_ahead : 0;
    // Of shared objects others may look at the memory itself; code that is trapped never is there.
    fault.may_wait = !is_shared(fault.key.object) && !mapping->trapped;
    if (m.program_fills) {  // page by page
        fault.pages_before = fault.pages_after = 0;
        fault.may_wait = false;
    }
    spdlog::trace("fault: tid {} {:#x} {} object {:#x} page {} presence {}", tid, at.value,
                  write ? "write" : "read", fault.key.object, fault.key.index,
                  static_cast<int>(agent_.presence(fault.key)));
    agent_.on_fault(fault, now());
}

void Pager::settle() {
    if (settling_) return;
    settling_ = true;
    for (;;) {
        agent_.drain(actions_);
        if (actions_.empty() && directory_) directory_->drain(actions_);
        if (actions_.empty()) break;
        auto batch = std::move(actions_);
        actions_ = {};
        for (Action& action : batch) {
            std::visit([this](auto& a) { run(a); }, action);
        }
    }
    settling_ = false;
    if (!forking_.empty()) moved_.notify_all();
    arm_timer();
}

void Pager::arm_timer() {
    uint64_t due = agent_.next_deadline();
    if (due == timer_due_) return;
    if (timer_ != 0) loop_.cancel(timer_);
    timer_ = 0;
    timer_due_ = due;
    if (due == ~0ULL) return;
    uint64_t t = now();
    timer_ = loop_.after(std::chrono::nanoseconds(due > t ? due - t : 0), [this] {
        timer_ = 0;
        timer_due_ = ~0ULL;
        agent_.on_timer(now());
        settle();
    });
}

std::vector<Pager::Place> Pager::places(PageKey key) {
    std::vector<Place> found;
    for (auto& [fragment, watch] : fragments_) {
        if (auto at = fragment->space.address_of(key)) {
            found.push_back({fragment, *at, fragment->space.find(*at)});
        }
    }
    return found;
}

std::vector<Pager::Piece> Pager::pieces(const PageRun& run) {
    std::vector<Piece> found;
    for (uint32_t i = 0; i < run.count;) {
        uint32_t step = 1;
        for (const Place& p : places(run[i])) {
            uint64_t left = (p.mapping->range.end - p.address) / page_size;
            auto count = static_cast<uint32_t>(std::min<uint64_t>(run.count - i, left));
            found.push_back({p.fragment, p.mapping, p.address, i, count});
            step = count;
        }
        i += step;
    }
    return found;
}

Result<void> Pager::ensure_registered(Fragment& fragment, Mapping& mapping) {
    if (mapping.registered || mapping.backing == Backing::native_file) return {};
    GPR_CHECK(fragment.register_range(mapping.range));
    mapping.registered = true;
    return {};
}

bool Pager::materialise(Fragment& fragment, const Mapping& mapping, Address at) {
    if (mapping.backing == Backing::native_file) return true;
    if (is_unfilled(fragment, mapping, at)) {
        tell_unfilled(fragment, at);
        return true;
    }
    if (!mapping.content) {
        fragment.install_zero(at, 1, true);
        return true;
    }
    std::vector<std::byte> page(page_size);
    auto offset = static_cast<off_t>(mapping.content_offset + (at - mapping.range.begin));
    if (pread(mapping.content->get(), page.data(), page_size, offset) <= 0) return false;
    fragment.install(at, page, true);
    return true;
}

void Pager::run(const Install& action) {
    if (is_being_removed(action.run)) return spawn(install_later(action));
    note_arrival();
    spdlog::trace("install: object {:#x} pages {}+{} presence {} first content {}",
                  action.run.object, action.run.first, action.run.count,
                  static_cast<int>(action.presence), static_cast<int>(action.contents.at(0).kind));
    if (is_shared(action.run.object)) {
        bool at_home = shared_memfd(action.run.object) < 0;
        if (at_home && views_changing_ > 0) return spawn(install_when_settled(action));
        install_shared(action);
        agent_.on_installed(action.id, now());
        return;
    }
    for (const Piece& p : pieces(action.run)) {
        bool writable = action.presence == Presence::exclusive;
        if (p.mapping->trapped) {
            install_trapped(p, action);
            continue;
        }
        if (p.mapping->backing == Backing::native_file) {
            for (uint32_t i = 0; i < p.count; i++) {
                const PageContent& c = action.contents[p.first + i];
                Address at = p.address + i * page_size;
                // The file has not changed; and there may be breakpoints in it.
                if (c.kind == ContentKind::data && !p.mapping->functions) {
                    p.fragment->memory().write(at, c.bytes.get(), page_size);
                }
            }
            continue;
        }
        ensure_registered(*p.fragment, *p.mapping);
        bool born_here = births_[action.run.object] == self_;
        for (uint32_t i = 0; i < p.count; i++) {
            const PageContent& c = action.contents[p.first + i];
            Address at = p.address + i * page_size;
            if (c.kind == ContentKind::data) {
                uint32_t n = 1;
                while (
                    i + n < p.count && action.contents[p.first + i + n].kind == ContentKind::data &&
                    action.contents[p.first + i + n].bytes.get() == c.bytes.get() + n * page_size) {
                    n++;
                }
                p.fragment->install(at, {c.bytes.get(), n * page_size}, writable);
                i += n - 1;
            } else if (p.mapping->program_fills) {
                tell_unfilled(*p.fragment, at);
            } else if (born_here && p.mapping->content) {
                give_born(*p.fragment, *p.mapping, at);
                if (!writable) p.fragment->write_protect({at, at + page_size});
            } else {
                uint32_t n = 1;
                while (i + n < p.count &&
                       action.contents[p.first + i + n].kind != ContentKind::data) {
                    n++;
                }
                p.fragment->install_zero(at, n, writable);
                i += n - 1;
            }
        }
    }
    agent_.on_installed(action.id, now());
    moved_.notify_all();
}

void Pager::run(const Unprotect& action) {
    note_arrival();
    spdlog::trace("unprotect: object {:#x} pages {}+{}", action.run.object, action.run.first,
                  action.run.count);
    if (is_shared(action.run.object)) enable_views(action.run);
    for (const Piece& p : pieces(action.run)) {
        if (p.mapping->backing == Backing::native_file) continue;
        p.fragment->write_enable({p.address, p.address + p.count * page_size});
    }
    agent_.on_installed(action.id, now());
}

void Pager::run(SendMessage& action) {
    if (action.to != self_) {
        send_(action.to, action.bulk, action.message);
    } else if (std::holds_alternative<Request>(action.message.body) ||
               std::holds_alternative<Surrender>(action.message.body) ||
               std::holds_alternative<Push>(action.message.body) ||
               std::holds_alternative<Ack>(action.message.body)) {
        directory_->on_message(self_, std::move(action.message), now());
    } else {
        agent_.on_message(std::move(action.message), now());
    }
}

void Pager::run(const Wake& action) {
    note_arrival();
    spdlog::trace("wake: object {:#x} page {} presence {}", action.key.object, action.key.index,
                  static_cast<int>(agent_.presence(action.key)));
    if (is_shared(action.key.object)) {
        PageRun page{action.key.object, action.key.index, 1};
        if (agent_.presence(action.key) == Presence::exclusive) {
            enable_views(page);
        } else {
            wake_views(page);
        }
        return;
    }
    for (const Place& p : places(action.key)) {
        Range page{p.address, p.address + page_size};
        if (p.mapping->trapped) {
            if (!show_now(*p.fragment, *p.mapping, p.address)) p.fragment->wake(page);
            continue;
        }
        if (agent_.presence(action.key) == Presence::exclusive && p.mapping->registered) {
            // Who waits for the program goes on waiting; to lift the write protection wakes, too.
            if (is_unfilled(*p.fragment, *p.mapping, p.address)) {
                tell_unfilled(*p.fragment, p.address);
                continue;
            }
            p.fragment->write_enable(page);
            give_born(*p.fragment, *p.mapping, p.address);
        }
        p.fragment->wake(page);
    }
}

void Pager::run(const AcquireDone& action) {
    auto it = waiting_.find(action.cookie);
    if (it != waiting_.end()) it->second->set(!action.refused);
}

void Pager::run(const CollectDone& action) {
    auto it = waiting_.find(action.cookie);
    if (it != waiting_.end()) it->second->set(action.left_behind == 0);
}

}  // namespace gpr
