#include "mm/page_actors.h"

#include <algorithm>

namespace gpr {

namespace {

// No instruction needs more pages: after so many in a row without losing one, an instruction must
// have ended.
constexpr uint32_t most_instruction_pages = 16;

}  // namespace

PageActor& PageActors::thread(Tid tid) {
    const ActorId id = static_cast<uint32_t>(tid);
    PageActor& a = actors_[id];
    if (a.instruction == 0) {
        a.id = id;
        a.tid = tid;
        a.instruction = next_instruction_++;
    }
    return a;
}

PageActor& PageActors::begin_acquire() {
    const ActorId id = next_acquire_++;
    PageActor& a = actors_[id];
    a.id = id;
    a.instruction = next_instruction_++;
    a.age = ++agent_.clock;
    return a;
}

PageActor* PageActors::find(ActorId id) {
    auto it = actors_.find(id);
    return it == actors_.end() ? nullptr : &it->second;
}

// A new fault of the thread: for the next page of the same instruction, or of a new one.
void PageActors::note_fault(PageActor& a, const Fault& fault, Presence presence) {
    if (a.age != 0 && !a.waiting && agent_.now > a.last_grant_ns + agent_.options.hold_ns) {
        end_instruction(a);
    }
    // If it waited for another page before, that waiter stays: the message may be late, and one
    // wake-up too many is harmless.
    if (a.age == 0) a.age = ++agent_.clock;
    PageActor::GroupPage* known = nullptr;
    for (uint32_t i = 0; i < a.group_size; ++i) {
        if (a.group[i].key == fault.key) known = &a.group[i];
    }
    if (known) {
        // It had the page and has lost it. A first write to a page granted for reading is no loss.
        if (known->access >= fault.access || presence == Presence::none) {
            a.escalated = true;
            a.in_row = 1;
        }
        known->access = std::max(known->access, fault.access);
    } else {
        if (presence == Presence::none && ++a.in_row > most_instruction_pages) {
            end_instruction(a);
            a.age = ++agent_.clock;
            a.in_row = 1;
        }
        a.group[a.group_next] = {fault.key, fault.access};
        a.group_next = (a.group_next + 1) % a.group.size();
        a.group_size = std::min<uint32_t>(a.group_size + 1, a.group.size());
        if (++a.new_pages > a.group.size()) {
            a.age = ++agent_.clock;
            a.new_pages = 0;
        }
    }
    a.waiting = true;
    a.wait_key = fault.key;
    agent_.recheck_deferred = true;
}

void PageActors::end_instruction(PageActor& a) {
    a.instruction = next_instruction_++;
    a.age = 0;
    a.escalated = false;
    a.group_size = a.group_next = a.new_pages = a.in_row = 0;
    agent_.recheck_deferred = true;
}

// Until when the hold lasts against a recall in the name of `by`; null: in anybody's.
uint64_t PageActors::held_until(const BusyPage& b, const BusyPage::Hold& h, const Seniority* by) {
    const PageActor* a = find(h.actor);
    if (!a || a->instruction != h.instruction) return 0;
    const bool older = by && *by < Seniority{a->age, agent_.self, a->tid};
    const uint64_t timed = a->last_grant_ns + agent_.options.hold_ns;
    if (a->tid == 0) {
        if (!a->done) return older ? 0 : never;
        return a->hold_until_release ? never : timed;
    }
    if (a->waiting) {
        // It waits for more access to this very page: the directory serves that in turn.
        if (!a->escalated || a->wait_key == b.key) return 0;
        return older ? 0 : never;
    }
    if (!a->escalated && h.grant != a->grants) return 0;
    return timed;
}

uint64_t PageActors::blocked_until(const BusyPage& b, const Seniority* by) {
    uint64_t until = 0;
    for (const BusyPage::Hold& h : b.holds) until = std::max(until, held_until(b, h, by));
    return until;
}

// The page has left, or become read-only.
void PageActors::lose_holds(BusyPage& b, Presence left) {
    std::erase_if(b.holds, [&](const BusyPage::Hold& h) {
        if (left == Presence::shared && h.access == Access::read) return false;
        PageActor* a = find(h.actor);
        if (a && a->instruction == h.instruction) a->in_row = 0;
        if (a && a->tid == 0 && !a->done) {
            ++a->missing;
            b.waiters.push_back({h.actor, h.access});
        }
        return true;
    });
}

}  // namespace gpr
