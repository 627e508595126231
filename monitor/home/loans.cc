#include "monitor/home/loans.h"

#include "monitor/home/home.h"

namespace gpr::home {

namespace {

constexpr std::chrono::microseconds lent_for{500};

}  // namespace

// In a mixed session shared memory is used at home, through the kernel's own mapping. The acceptor
// has a page of it only while a system call there needs it.
void Loans::note_loan(ObjectId object) {
    auto [it, first] = lent_.try_emplace(object);
    if (!first) {
        it->second.again |= it->second.ending;
        return;
    }
    home_.loop.after(lent_for, [this, object] { spawn(end_loan(object)); });
}

Task<void> Loans::end_loan(ObjectId object) {
    lent_[object].ending = true;
    if (home_.acceptors.reachable() && home_.pager.shared.contains(object)) {
        // A variable, because GCC 12 cannot compile a braced list here.
        std::vector<ObjectId> objects = {object};
        co_await home_.pager.shared.collect(std::move(objects), Access::write);
    }
    // Only now, because end_loans() must wait for pages that are still on their way.
    bool again = lent_[object].again;
    lent_.erase(object);
    if (again) note_loan(object);
}

// To be called before a thread changes nodes, and before home serves a call, so that each side sees
// what the other has written.
Task<void> Loans::end_loans() {
    std::vector<ObjectId> objects;
    for (const auto& [object, loan] : lent_) {
        if (home_.pager.shared.contains(object)) objects.push_back(object);
    }
    if (!objects.empty() && home_.acceptors.reachable()) {
        co_await home_.pager.shared.collect(std::move(objects), Access::write);
    }
}

}  // namespace gpr::home
