#include "acceptor/worker/known_lookups.h"

#include <sys/syscall.h>

#include <algorithm>

#include "syscall/table.h"

namespace gpr {

namespace {

constexpr size_t most_answers = 16384;
constexpr size_t most_dependences = 32 * most_answers;
// By then a status may have another time of last access, which no event tells: relatime, see
// monitor/home/lookups.cc.
constexpr std::chrono::hours longest{1};
// A message can pass 253 descriptors (SCM_MAX_FD), another call makes at most two.
constexpr uint32_t most_passed = 253, most_made = 2;

std::string key_of_path(const MarshalledCall& call) {
    return {reinterpret_cast<const char*>(call.in_bytes.data()), call.in_bytes.size()};
}

// The number, every argument that is not a pointer, and the path.
std::string key_of_call(char mark, uint32_t number, const SyscallArguments& args,
                        const MarshalledCall& call) {
    std::string key(1, mark);  // no path begins so with a NUL inside, as there is in the number
    auto add = [&key](const auto& value) {
        key.append(reinterpret_cast<const char*>(&value), sizeof value);
    };
    add(number);
    const Row* row = find_row(number);
    for (size_t i = 0; row && i < row->arguments.size(); i++) {
        const Kind kind = row->arguments[i].kind;
        if (kind == Kind::scalar || kind == Kind::fd) add(args[i]);
    }
    return key + key_of_path(call);
}

std::string key_of(const MarshalledCall& call) {
    return key_of_call('=', call.number, call.args, call);
}

// Likewise, of what is the same whether or not it follows links.
std::string key_of_file(const MarshalledCall& call) {
    const auto [number, args] = following_links(call);
    return key_of_call('~', number, args, call);
}

std::string key_for(const MarshalledCall& call, KnownLookups::For which) {
    switch (which) {
        case KnownLookups::For::path: return key_of_path(call);
        case KnownLookups::For::file: return key_of_file(call);
        case KnownLookups::For::call: break;
    }
    return key_of(call);
}

}  // namespace

void KnownLookups::keep(const MarshalledCall& call, Answer answer, For which,
                        std::span<const uint32_t> ids, Clock::time_point now) {
    if (answers_.size() >= most_answers || dependences_ >= most_dependences) forget_all();
    const std::string key = key_for(call, which);
    const auto before = answers_.find(key);
    if (before != answers_.end()) erase(before);
    const uint64_t number = ++last_number_;
    const auto it = answers_.emplace(key, Known{std::move(answer), now, number}).first;
    by_number_[number] = &it->first;
    dependences_ += ids.size();
    for (const uint32_t id : ids) dependents_[id].push_back(number);
}

void KnownLookups::erase(Answers::iterator it) {
    by_number_.erase(it->second.number);
    answers_.erase(it);
}

const KnownLookups::Known* KnownLookups::at(const std::string& key, Clock::time_point now) {
    auto it = answers_.find(key);
    if (it == answers_.end()) return nullptr;
    if (now - it->second.since < longest) return &it->second;
    erase(it);
    return nullptr;
}

const KnownLookups::Answer* KnownLookups::find(const MarshalledCall& call, const LookupCall& lookup,
                                               Clock::time_point now) {
    if (answers_.empty()) return nullptr;
    if (const Known* known = at(key_of(call), now)) return &known->answer;
    if (tells_status(lookup)) {
        if (const Known* known = at(key_of_file(call), now)) return &known->answer;
    }
    const bool may_be_full = lookup.kind == LookupCall::Kind::open && spare_ == 0;
    if (may_be_full || lookup.kind == LookupCall::Kind::directory) return nullptr;
    const Known* known = at(key_of_path(call), now);
    return known ? &known->answer : nullptr;
}

void KnownLookups::forget(uint32_t id) {
    auto it = dependents_.find(id);
    if (it == dependents_.end()) return;
    for (const uint64_t number : it->second) {
        const auto dependent = by_number_.find(number);
        if (dependent != by_number_.end()) erase(answers_.find(*dependent->second));
    }
    dependences_ -= it->second.size();
    dependents_.erase(it);
}

void KnownLookups::forget_all() {
    answers_.clear();
    by_number_.clear();
    dependents_.clear();
    dependences_ = 0;
}

void KnownLookups::note_call_at_home(uint32_t number) {
    const bool receives = number == SYS_recvmsg || number == SYS_recvmmsg;
    const uint32_t most = number == SYS_recvmmsg ? spare_ : receives ? most_passed : most_made;
    spare_ -= std::min(spare_, most);
}

}  // namespace gpr
