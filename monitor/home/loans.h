// Pages of shared memory that an acceptor has for a moment although the memory is used at home.
#pragma once

#include <map>

#include "mm/page_protocol.h"
#include "monitor/home/part.h"

namespace gpr::home {

class Loans {
public:
    explicit Loans(Home& home) : home_(home) {}

    void note_loan(ObjectId object);
    Task<void> end_loans();

private:
    Task<void> end_loan(ObjectId object);

    // An object of which acceptors may have pages.
    struct Loan {
        bool ending = false;
        bool again = false;  // pages were lent again since the loan began to end
    };

    Home& home_;
    std::map<ObjectId, Loan> lent_;
};

}  // namespace gpr::home
