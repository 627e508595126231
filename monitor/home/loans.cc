#include "monitor/home/loans.h"

#include "monitor/home/home.h"

namespace gpr::home {

namespace {

constexpr std::chrono::microseconds lent_for{500};

}  // namespace

// In a mixed session shared memory is used at home, where the kernel's own mapping shows it. The
// acceptor has a page of it only while a system call there needs it.
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
        std::vector<ObjectId> objects = {object};  // a list in its place is more than GCC 12 can do
        co_await home_.pager.shared.collect(std::move(objects), Access::write);
    }
    // Until now it was on its way, which a thread may overtake.
    bool again = lent_[object].again;
    lent_.erase(object);
    if (again) note_loan(object);
}

// Before a thread changes nodes or is served by the other one: each sees what the other wrote.
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
